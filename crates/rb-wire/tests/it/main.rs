//! Tests of all external input: transcripts, requests and responses, intact or damaged.

#![expect(
    clippy::expect_used,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// Truncated, damaged and hostile transcripts.
mod damage;
/// Small sample file of every format.
mod fixtures;
/// Invariants of every request and response.
mod laws;
/// Damaged requests and responses.
mod live_damage;
/// Imported runs as text for snapshots.
mod render;
/// Real files, if present.
mod samples;
