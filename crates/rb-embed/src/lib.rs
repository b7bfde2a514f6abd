//! Sentence embeddings compiled into the binary, calibrated similarity, and exact vector search.
//!
//! ```
//! use rb_embed::{Calibration, DIMS, Index, Owner, SearchParams, embed, similarity};
//!
//! // Compare two texts.
//! assert!(similarity("session expiry", "session token expiration") > 0.8);
//! assert!(similarity("session expiry", "paint the fence") < 0.1);
//!
//! // Search many texts with a minimum similarity.
//! let mut index = Index::new(DIMS);
//! index.insert(Owner::Org("acme"), 1, &embed("session token expiration"))?;
//! index.insert(Owner::Shared, 2, &embed("disk is full"))?;
//! let params = SearchParams { max_hits: 2, min_cosine: Calibration::STATIC_MODEL.cosine_at(0.8) };
//! let hits = index.nearest("acme", &embed("session expiry"), params)?;
//! assert_eq!(hits.len(), 1);
//! # Ok::<(), rb_embed::DimensionMismatch>(())
//! ```
//!
//! **Guarantees.** No network access and no download, at build time or run time. The same text always gives the same
//! vector. The cost of a text is bounded (`MAX_PIECES`, `MAX_TEXT_BYTES`). The crate depends on no other crate of the
//! workspace, and its interface does not use JSON.

/// Calibration of cosines to similarities.
mod calibration;
/// Vectors of one owner.
mod partition;
/// Normalisation and splitting of text into words.
mod pretokenizer;
/// Matrix of vectors with one byte per dimension.
mod quantized;
/// Index partitioned by owner.
mod search;
/// Embedder compiled into the binary.
mod static_model;
/// Embedder loaded from a folder.
mod transformer;
/// Worker thread that runs a transformer.
mod transformer_worker;
/// Unit vector returned by all embedders.
mod vector;
/// Hash function of the vocabulary table, shared with `build.rs`.
mod vocab_hash;
/// Vocabulary table, vectors and scales.
mod vocabulary;
/// Splitting of words into vocabulary entries.
mod wordpiece;

pub use calibration::{CONFIRMATION_MIN_COSINE, Calibration, similarity};
pub use search::{DimensionMismatch, Hit, Index, Owner, SearchParams};
pub use static_model::{DIMS, embed};
pub use transformer::{Transformer, TransformerError};
pub use transformer_worker::TransformerWorker;
pub use vector::Vector;
pub use wordpiece::{MAX_PIECES, MAX_TEXT_BYTES};
