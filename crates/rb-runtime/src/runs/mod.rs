//! Runs: their live state, its rebuild from stored steps, and the caches around them.

/// Monitor settings and assessments.
pub mod assessment;
/// Inputs and results of decisions.
pub mod decision;
/// State of one run.
pub mod live_run;
/// Cache from run id to organisation.
pub mod owner_cache;
/// Locks and states of live runs.
pub mod registry;
/// Decision inputs stored with a step.
pub mod replay;
/// Entry of steps into runs.
pub mod service;
/// Exclusive access to a run.
pub mod session;
#[cfg(test)]
mod tests;
/// Monitor states of whole traces.
pub mod trace_cache;

pub use decision::{CallContext, Decided, Decision, Delivery, Durability};
pub use live_run::{LiveRun, RunLoader, is_same_step, step_of, stored_steps};
pub use owner_cache::RunOwnerCache;
pub use registry::{LiveRuns, RunGuard};
pub use service::{MAX_ATTEMPTS, RunDependencies, RunError, RunService, Trace};
pub use session::RunSession;
pub use trace_cache::TraceCache;
