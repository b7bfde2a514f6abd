//! Extractors of the API.

/// Bodies and queries.
pub(crate) mod body;
/// Authenticated callers.
mod caller;
/// Path segments.
pub(crate) mod path;

pub(crate) use caller::Authenticated;
