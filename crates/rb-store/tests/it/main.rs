//! The store from outside: every backend against the contract, and what only a file can suffer.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// Every backend keeps to the contract.
mod backends;
/// A database that is away.
mod backlog;
/// A PostgreSQL of our own.
mod cluster;
/// From one store to another.
mod copies;
/// What was answered survives `kill -9`.
mod durability;
/// Files that are damaged, locked, foreign or open to others.
mod files;
/// What only PostgreSQL can suffer.
mod postgres;
/// Sums equal a recount, whatever happened.
mod recount;
