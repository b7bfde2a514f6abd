//! Pages, one file each.

pub(crate) mod experiments;
pub(crate) mod findings;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod patterns;
/// Preview of a profile on stored runs.
mod profile_preview;
pub(crate) mod profiles;
pub(crate) mod quickstart;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sign_in;
