//! Write operations. All writes are variants of one enum, so they share one code path and commit in order.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::rows::{
    ConversationRow, FindingRow, KeyRow, OperatorMessageRow, PatternRow, ProfileRow, RunKey,
    StepRow, UsageDay,
};

/// Write operation. `Put…` replaces the row with the same key; deleting a missing row affects no rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Requires that the run has exactly `version` changes (`RunRow::version`; 0 for an unknown run). Otherwise the
    /// whole call fails with [`StoreError::VersionConflict`]. Must be the first change of the call.
    ///
    /// [`StoreError::VersionConflict`]: crate::StoreError::VersionConflict
    ExpectVersion {
        run: RunKey,
        version: u64,
    },
    /// Creates a run or updates its description.
    StartRun(Box<RunStart>),
    /// Stores a step by run and index; creates the run if it is unknown.
    PutStep(Arc<StepRow>),
    /// Stores a step again with data that was not known before, such as the response to its model call. Does not
    /// increase the run's version, so decisions based on the step stay valid.
    AmendStep(Arc<StepRow>),
    /// Ends a run; creates it if it is unknown. If repeated, the last outcome and the first time are stored.
    FinishRun {
        run: RunKey,
        at_ms: i64,
        outcome: String,
    },
    /// Deletes a run and its steps. Its usage stays counted.
    DeleteRun(RunKey),
    /// Deletes up to `runs_max` runs that had no activity since `before_ms`, oldest first.
    ExpireRuns {
        before_ms: i64,
        runs_max: u32,
    },

    /// Sets the version of an existing run, for copies of a store.
    SetVersion {
        run: RunKey,
        version: u64,
    },
    /// Replaces the usage of a day, for copies of a store.
    SetUsage {
        org: String,
        day: UsageDay,
    },

    PutPattern(Box<PatternRow>),
    /// Deletes a pattern; `org` is empty for E2 and E3.
    DeletePattern {
        org: String,
        tier: String,
        pattern_id: String,
    },
    /// Counts a use of each pattern, named by organisation, tier and id.
    UsePatterns {
        used: Vec<(String, String, String)>,
        at_ms: i64,
    },

    PutFinding(Box<FindingRow>),
    DeleteFinding {
        org: String,
        codebase: String,
        finding_id: String,
    },
    /// Deletes the findings about these files.
    InvalidateFindings {
        org: String,
        codebase: String,
        file_paths: Vec<String>,
    },
    ClearFindings {
        org: String,
        codebase: String,
    },

    PutProfile(Box<ProfileRow>),
    DeleteProfile {
        org: String,
        project: String,
        profile_id: String,
    },

    PutKey(Box<KeyRow>),
    /// Revokes a key; has no effect on a revoked key.
    RevokeKey {
        key_id: String,
        at_ms: i64,
    },

    PutSetting {
        name: String,
        value: String,
    },
    /// Stores the gateway's state of a conversation, which is deleted with its run.
    PutConversation(Box<ConversationRow>),

    /// Queues an operator message for a run, with which it is deleted.
    PutOperatorMessage(Box<OperatorMessageRow>),
    /// Removes an operator message for delivery. Of several concurrent calls only one affects a row and may deliver
    /// it.
    TakeOperatorMessage {
        run: RunKey,
        message_id: String,
    },
    /// Deletes the operator messages from before `before_ms`.
    ExpireOperatorMessages {
        before_ms: i64,
    },
}

impl Change {
    /// Returns the run that the change affects, if it affects a single one.
    pub(crate) fn run(&self) -> Option<&RunKey> {
        match self {
            Self::StartRun(start) => Some(&start.run),
            Self::PutStep(step) | Self::AmendStep(step) => Some(&step.run),
            Self::ExpectVersion { run, .. }
            | Self::FinishRun { run, .. }
            | Self::SetVersion { run, .. }
            | Self::DeleteRun(run) => Some(run),
            Self::PutConversation(row) => Some(&row.run),
            Self::ExpireRuns { .. }
            | Self::SetUsage { .. }
            | Self::PutPattern(_)
            | Self::DeletePattern { .. }
            | Self::UsePatterns { .. }
            | Self::PutFinding(_)
            | Self::DeleteFinding { .. }
            | Self::InvalidateFindings { .. }
            | Self::ClearFindings { .. }
            | Self::PutProfile(_)
            | Self::DeleteProfile { .. }
            | Self::PutKey(_)
            | Self::RevokeKey { .. }
            | Self::PutSetting { .. }
            | Self::PutOperatorMessage(_)
            | Self::TakeOperatorMessage { .. }
            | Self::ExpireOperatorMessages { .. } => None,
        }
    }
}

/// Description of a run. On an existing run, non-empty fields replace the stored ones, metadata is merged by key, and
/// the start time, `experiment_id` and `arm` keep their first value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunStart {
    pub run: RunKey,
    pub project: String,
    pub at_ms: i64,
    pub agent_name: String,
    pub task: String,
    pub model: String,
    pub framework: String,
    pub codebase: String,
    pub task_profile: String,
    /// Id of the parent run, for sub-agents.
    pub parent: String,
    /// Name of the API key that reported the run; the first one is kept.
    pub key_name: String,
    /// The keys `experiment_id` and `arm` make the run part of an experiment.
    pub metadata: Map<String, Value>,
}
