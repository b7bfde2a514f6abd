//! Values that pass between the engine and the host: `PreCall` before the lookups, `Plan` before the model call.

use std::sync::Arc;

use super::Assessment;
use crate::guidance::fragment::{Fragment, Item};
use crate::guidance::{Query, Source, Tier, operator_message};
use crate::policy::fsm::State;

/// Lookups to make before the next model call; then [`Run::plan`](super::Run::plan).
#[must_use = "look up `queries`, then call `Run::plan`"]
#[derive(Debug, Clone, PartialEq)]
pub struct PreCall {
    /// Index of the model call, from 0.
    pub call: u32,
    /// State of the run.
    pub state: State,
    /// Difficulty of the newest thought; `None` without a thought.
    pub difficulty: Option<f64>,
    /// Assessment of the new steps.
    pub assessment: Arc<Assessment>,
    /// Lookups; usually none.
    pub queries: Vec<Query>,
    pub(super) advice: Vec<Item>,
    pub(super) stop: Option<Stop>,
    pub(super) skipped_reason: Option<&'static str>,
    /// The agent was not asked to wrap up yet.
    pub(super) may_wrap_up: bool,
    pub(super) wrap_up: Option<String>,
}

impl PreCall {
    /// Asks the agent to wrap up because a budget of the host is nearly used up;
    /// [`crate::policy::token_budget::wrap_up`] has the text. A run is asked once, and not before its first step.
    pub fn with_wrap_up(mut self, text: String) -> Self {
        if std::mem::take(&mut self.may_wrap_up) {
            let advice = text.clone();
            self.advice.push(Item::Advice { source: Source::Budget, monitor: None, text: advice });
            self.wrap_up = Some(text);
        }
        self
    }

    /// Returns the request to wrap up that was added by the host.
    pub fn wrap_up(&self) -> Option<&str> {
        self.wrap_up.as_deref()
    }

    /// Adds operator messages; they precede all other guidance.
    pub fn with_operator_messages(mut self, messages: &[String]) -> Self {
        let items = messages.iter().map(|message| Item::Advice {
            source: Source::Operator,
            monitor: None,
            text: operator_message(message),
        });
        self.advice.splice(0..0, items);
        self
    }
}

/// Reason to end the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The limit of an enforced token budget is reached.
    TokenBudget {
        /// Tokens used.
        used: u64,
        /// Limit.
        limit: u64,
    },
}

/// Decision on the next model call. After the call, `Run::record`.
#[must_use = "make the call as planned, then call `Run::record`"]
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Reason to end the run, if it should end.
    pub stop: Option<Stop>,
    /// Model to call instead of the requested one.
    pub route: Option<String>,
    /// Guidance for the request.
    pub fragment: Option<Fragment>,
    pub(super) pre_call: PreCall,
    pub(super) model_id: String,
    pub(super) shown: Vec<Item>,
    pub(super) answered: Vec<Tier>,
}

impl Plan {
    /// Returns the assessment that the plan is based on.
    pub fn pre_call(&self) -> &PreCall {
        &self.pre_call
    }

    /// Removes the guidance because it did not reach the model; none of it counts.
    pub fn without_guidance(self) -> Self {
        Self { fragment: None, route: None, shown: Vec::new(), answered: Vec::new(), ..self }
    }

    /// Returns the items of the fragment.
    pub fn shown(&self) -> &[Item] {
        &self.shown
    }
}
