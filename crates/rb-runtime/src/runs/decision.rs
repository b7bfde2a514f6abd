//! Inputs and results of the decision on one model call.

use std::sync::Arc;

use rb_engine::run::Plan;
use rb_store::{Change, RunStart, StepRow};
use tokio::time::Instant;

use super::RunError;
use super::assessment::Evidence;
use super::live_run::LiveRun;
use crate::operator_messages::Claimed;
use crate::retrieval::Match;

/// Inputs of a decision besides the steps.
pub struct CallContext<'a> {
    /// Model of the call; empty for the model of the run.
    pub model: &'a str,
    /// Time at which retrieval is skipped and the decision fails; `None` for no limit.
    pub deadline: Option<Instant>,
    pub durability: Durability,
    pub delivery: Delivery,
    /// Advice of the host to wrap up, because a budget is nearly used up.
    pub budget_warning: Option<String>,
    /// Claims operator messages. `false` if no guidance can be put into the call.
    pub may_steer: bool,
    /// Describes the run, for a run that the store does not have.
    pub description: &'a (dyn Fn() -> RunStart + Send + Sync),
    /// Stores the description even if the store has the run.
    pub is_described_again: bool,
    /// Returns a change that is stored together with the steps. It must not change the version of the run.
    pub companion: &'a (dyn Fn() -> Option<Change> + Send + Sync),
}

impl<'a> CallContext<'a> {
    /// Context of a call whose host puts the guidance into the request itself.
    pub fn of_host(model: &'a str, description: &'a (dyn Fn() -> RunStart + Send + Sync)) -> Self {
        Self {
            model,
            deadline: None,
            durability: Durability::BeforeReply,
            delivery: Delivery::Assumed,
            budget_warning: None,
            may_steer: true,
            description,
            is_described_again: false,
            companion: &|| None,
        }
    }

    /// Runs a future until the deadline.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, RunError> {
        match self.deadline {
            Some(deadline) => {
                tokio::time::timeout_at(deadline, work).await.map_err(|_| RunError::TimedOut)
            }
            None => Ok(work.await),
        }
    }
}

/// Time at which steps are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Through the write queue, without delay for the caller. On a store that several nodes share, the steps are
    /// committed before the decision is returned, because another node may get the next request.
    Queued,
    /// Committed before the decision is returned.
    BeforeReply,
}

/// Time at which guidance counts as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// With the decision.
    Assumed,
    /// With [`RunService::guidance_delivered`](super::RunService::guidance_delivered).
    Confirmed,
}

/// A stored decision. [`RunSession::plan`](super::RunSession::plan) has the plan.
#[derive(Debug, Default)]
pub struct Decided {
    /// Row of the newest step.
    pub row: Arc<StepRow>,
    /// Patterns that the plan shows.
    pub matches: Vec<Match>,
    /// Operator messages that the plan contains.
    pub messages: Claimed,
    /// The guidance quota of the organisation is used up, so nothing was retrieved.
    pub is_over_quota: bool,
}

/// Plan for a model call with its explanation.
#[derive(Debug)]
pub struct Decision {
    pub plan: Plan,
    /// The step was decided before; nothing was changed.
    pub is_repeated: bool,
    pub is_over_quota: bool,
    pub evidence: Vec<Evidence>,
    pub failure_type: Option<&'static str>,
    pub tokens_used: u64,
    /// Share of the token budget that is used.
    pub budget_used: Option<f64>,
}

impl Decision {
    /// Current decision of a run about a step. A step has none if it was skipped or observed.
    pub(super) fn of(live: &LiveRun, step_index: u32) -> Result<Self, RunError> {
        let plan = live.current_plan().filter(|_| live.newest() == Some(step_index));
        let plan = plan.ok_or(RunError::NotDecided { step_index })?;
        let (tokens_used, budget_used) = live.budget_used();
        Ok(Self {
            plan: plan.clone(),
            is_repeated: false,
            is_over_quota: false,
            evidence: live.evidence(plan.pre_call()),
            failure_type: live.failure_type(plan.pre_call()),
            tokens_used,
            budget_used,
        })
    }
}
