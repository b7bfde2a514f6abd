//! What is kept of one piece of the vocabulary: its scale and its vector, side by side.
//!
//! They are needed together, one piece at a time, out of megabytes that are seldom in a cache. `build.rs` includes this
//! file too: both sides agree on these very lines.

/// Dimensions of the packed vectors.
pub(crate) const DIMS: usize = 256;

/// Bytes of a scale, which come first.
pub(crate) const SCALE_BYTES: usize = size_of::<f32>();
