//! Text and action analysis. Everything that several monitors need of a step is computed here, once per step.

/// Classifies tool calls: kind, files touched, outcome.
pub mod action;
/// Difficulty score of a thought.
pub mod difficulty;
/// Text embeddings.
pub mod embedding;
/// Character classes and text slicing.
pub mod text;

pub(crate) mod claims;
pub(crate) mod features;
pub(crate) mod history;
pub(crate) mod identifiers;
pub(crate) mod lexicon;
pub(crate) mod phrases;
pub(crate) mod recency_filter;
pub(crate) mod sentences;
