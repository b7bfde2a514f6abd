//! HTTP errors and extractors shared by the gateway, the API and the dashboard.

/// Request bodies and queries.
pub mod body;
/// Authenticated callers.
mod caller;
/// Errors as clients see them.
pub mod error;
/// Path segments.
mod path;

pub use caller::Authenticated;
pub use path::Path;

use rb_runtime::Runtime;

/// State of a surface, as far as extractors need it.
pub trait Surface: Send + Sync {
    fn runtime(&self) -> &Runtime;

    /// Maximum size of a request body, in bytes.
    fn max_body_bytes(&self) -> usize;
}
