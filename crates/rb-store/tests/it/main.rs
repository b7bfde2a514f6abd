//! Integration tests of the store: the contract suite on every backend, and failures of files and servers.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// Contract suite on every backend.
mod backends;
/// Write queue for an unavailable database.
mod backlog;
/// PostgreSQL server for tests.
mod cluster;
/// Copies between stores.
mod copies;
/// Durability of acknowledged writes.
mod durability;
/// Damaged, locked and foreign files.
mod files;
/// Databases of earlier versions.
mod migrations;
/// PostgreSQL with several nodes and failures.
mod postgres;
/// Property tests of all aggregates.
mod recount;
