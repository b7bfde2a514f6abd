//! Everything that comes or goes is unpacked here: transcripts become runs, runs become steps.
//!
//! **No IO.** Bytes come in as slices; what comes out borrows from them wherever it can.
#![warn(missing_docs)]

/// Recorded runs of agents, in the formats they are kept in.
pub mod transcripts;
