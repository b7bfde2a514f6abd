//! The importers, from outside: fixtures, damage, and real files where there are any.

#![expect(
    clippy::expect_used,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// Files that are cut off, damaged or hostile.
mod damage;
/// A miniature of every format.
mod fixtures;
/// Real files, where there are any.
mod samples;
/// What was found, for people.
mod told;
