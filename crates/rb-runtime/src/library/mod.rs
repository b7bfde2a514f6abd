//! Edits of patterns and profiles, for the API and the dashboard.

/// Patterns.
mod patterns;
/// Monitor weights by name.
mod profiles;

pub use patterns::{NewPattern, PatternAttributes, PatternId, PatternLibrary};
pub use profiles::{NewProfile, ProfileChange, ProfileId, ProfileLibrary};

use rb_store::StoreError;

/// Reason why an edit was rejected.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A field has a value that cannot be stored.
    #[error("{message}")]
    Invalid { field: &'static str, message: String },
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("{0}")]
    NotFound(&'static str),
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LibraryError {
    fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid { field, message: message.into() }
    }
}
