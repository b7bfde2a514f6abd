//! What holds for everything that comes from outside: transcripts, requests and answers, whole or damaged.

#![expect(
    clippy::expect_used,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// Transcripts that are cut off, damaged or hostile.
mod damage;
/// A miniature of every format.
mod fixtures;
/// What holds for every request and every answer.
mod laws;
/// Requests and answers, damaged in every way that a few bytes can.
mod live_damage;
/// Imported runs as text for snapshots.
mod render;
/// Real files, where there are any.
mod samples;
