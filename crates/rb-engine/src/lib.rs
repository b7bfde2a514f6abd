//! The mind of ReasonBlocks.
#![warn(missing_docs)]

/// What the agent did, as the engine sees it.
pub mod step;
/// How texts are read.
pub mod text;
