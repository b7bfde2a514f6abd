//! The mind of ReasonBlocks.
#![warn(missing_docs)]

/// What kind of act a step is, what it touches, and how it came out.
pub mod act;
/// What the agent did, as the engine sees it.
pub mod step;
/// How texts are read.
pub mod text;
