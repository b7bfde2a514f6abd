//! The importers, from outside: fixtures, damage, and real files where there are any.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// Real files, where there are any.
mod samples;
/// What was found, for people.
mod told;
