//! Sentence embeddings inside the binary, a similarity that means something, and search.
//!
//! ```
//! use rb_embed::{Calibration, DIMS, Index, Owner, Wanted, embed, similarity};
//!
//! // Two texts.
//! assert!(similarity("session expiry", "session token expiration") > 0.8);
//! assert!(similarity("session expiry", "paint the fence") < 0.1);
//!
//! // Many texts, behind a gate.
//! let mut index = Index::new(DIMS);
//! index.insert(Owner::Org("acme"), 1, &embed("session token expiration"))?;
//! index.insert(Owner::Shared, 2, &embed("disk is full"))?;
//! let wanted = Wanted { count_max: 2, cosine_min: Calibration::PACKED.cosine_at(0.8) };
//! let hits = index.nearest("acme", &embed("session expiry"), wanted)?;
//! assert_eq!(hits.len(), 1);
//! # Ok::<(), rb_embed::WrongDims>(())
//! ```
//!
//! **Promises.** No network and no download, when building or running. The same text gives the same
//! vector, always. Work per text is bounded ([`PIECES_MAX`], [`TEXT_BYTES_MAX`]). No other crate of
//! the workspace is used, and no JSON shows in the interface.

/// Cosines into similarities: what the gates 0.8 and 0.7 mean.
mod calibrate;
/// One owner's vectors.
mod group;
/// A transformer that may be asked from any thread.
mod hosted;
/// The embedder inside the binary: pieces, their vectors, the mean.
mod packed;
/// The hash under which pieces are filed; shared with `build.rs`.
mod piece_hash;
/// Words into pieces of the vocabulary.
mod pieces;
/// What is kept of one piece; shared with `build.rs`.
mod record;
/// Rows of eight bits, and how near a query is to them.
mod rows;
/// Search, grouped by organisation.
mod search;
/// The second embedder: a transformer from a folder the user points to.
mod transformer;
/// A direction in meaning: what every embedder returns.
mod vector;
/// The vocabulary inside the binary.
mod vocabulary;
/// Text into words.
mod words;

pub use calibrate::{CONFIRMED_FROM, Calibration, similarity};
pub use hosted::HostedTransformer;
pub use packed::{DIMS, embed};
pub use pieces::{PIECES_MAX, TEXT_BYTES_MAX};
pub use search::{Hit, Index, Owner, Wanted, WrongDims};
pub use transformer::{Transformer, TransformerError};
pub use vector::Vector;
