//! Conversations behind the gateway.

/// State of one conversation.
pub(crate) mod state;
/// Conversations in memory, backed by the store.
pub(crate) mod store;
