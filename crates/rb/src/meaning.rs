//! The embeddings inside the binary, as the engine asks for them.

use std::sync::Arc;

use rb_engine::meaning::{Embedder, Vector};

/// Compares meanings by the packed vectors.
pub(crate) fn embedder() -> Arc<dyn Embedder> {
    Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values()))
}
