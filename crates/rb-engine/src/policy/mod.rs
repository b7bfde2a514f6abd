//! Decisions that depend on scores, not on texts: run state, cooldowns and caps, model choice, token limits.

/// State machine over the difficulty scores.
pub mod fsm;
/// Cooldowns and caps of guidance.
pub mod gate;
/// Maps run states to models.
pub mod routing;
/// Token counts and limits.
pub mod token_budget;
