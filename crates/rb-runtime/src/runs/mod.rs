//! Runs: their live state, its rebuild from stored steps, and the caches around them.

/// Monitor settings and assessments.
pub mod assessment;
/// State of one run.
pub mod live_run;
/// Cache from run id to organisation.
pub mod owner_cache;
/// Locks and states of live runs.
pub mod registry;
/// Decision inputs stored with a step.
pub mod replay;
/// Monitor states of whole traces.
pub mod trace_cache;

pub use live_run::{LiveRun, RunLoader, is_same_step, step_of};
pub use owner_cache::RunOwnerCache;
pub use registry::{LiveRuns, RunGuard};
pub use trace_cache::TraceCache;
