//! What may be changed: one enum, so that every write goes through one door and is committed in order.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::rows::{
    ConversationRow, FindingRow, KeyRow, PatternRow, ProfileRow, RunKey, StepRow, UsageDay,
    WaitingRow,
};

/// One change. Putting replaces what is there under the same key; deleting what is not there touches no row.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Guards the changes behind it: the run must have been changed exactly `version` times (`RunRow::version`, nothing
    /// for an unknown run). Otherwise nothing of the call is done, and the error is [`StoreError::Moved`]. Stands first.
    ///
    /// [`StoreError::Moved`]: crate::StoreError::Moved
    Expect {
        run: RunKey,
        version: u64,
    },
    /// A run begins, or says more about itself.
    StartRun(Box<RunStart>),
    /// A step, by run and index. Of an unknown run, it begins the run too.
    PutStep(Arc<StepRow>),
    /// What became of a step that was put, such as the answer to the call it led to: the same row with more in it. The
    /// run does not count as changed by it, since whoever went on from the step may still do so.
    AmendStep(Arc<StepRow>),
    /// A run ends. May come twice: the last outcome stands, the first time stands. An unknown run begins and ends.
    FinishRun {
        run: RunKey,
        at_ms: i64,
        outcome: String,
    },
    /// A run and its steps go. What they used stays counted.
    DeleteRun(RunKey),
    /// The runs that nothing was heard of since `before_ms` go, the oldest first and at most `runs_max` of them.
    ExpireRuns {
        before_ms: i64,
        runs_max: u32,
    },

    /// For copies of a store: the run counts as changed so often. An unknown run stays unknown.
    SetVersion {
        run: RunKey,
        version: u64,
    },
    /// For copies of a store: what an organisation used on a day, whatever its steps say.
    SetUsage {
        org: String,
        day: UsageDay,
    },

    PutPattern(Box<PatternRow>),
    /// `org` is empty for E2 and E3.
    DeletePattern {
        org: String,
        tier: String,
        pattern_id: String,
    },
    /// Patterns were shown: their use is counted. Each is named by organisation, tier and id.
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
    /// The findings about these files go.
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
    /// From now on the key is refused; revoking it again changes nothing.
    RevokeKey {
        key_id: String,
        at_ms: i64,
    },

    PutSetting {
        name: String,
        value: String,
    },
    /// What the gateway remembers of a conversation; it goes with its run.
    PutConversation(Box<ConversationRow>),

    /// Words wait for a run; they go with it.
    PutWaiting(Box<WaitingRow>),
    /// Somebody takes the words along. Of several who try, one touches a row: that one says them.
    TakeWaiting {
        run: RunKey,
        words_id: String,
    },
    /// The words that wait since before then go.
    ExpireWaiting {
        before_ms: i64,
    },
}

impl Change {
    /// The run it is about, where it is about one.
    pub(crate) fn run(&self) -> Option<&RunKey> {
        match self {
            Self::StartRun(start) => Some(&start.run),
            Self::PutStep(step) | Self::AmendStep(step) => Some(&step.run),
            Self::Expect { run, .. }
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
            | Self::PutWaiting(_)
            | Self::TakeWaiting { .. }
            | Self::ExpireWaiting { .. } => None,
        }
    }
}

/// What a run says about itself when it begins. Said again, what is not empty replaces what was there; the time of
/// the beginning, `experiment_id` and `arm` stand once they are set, and metadata is merged key by key.
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
    /// The run that started this one, for sub-agents.
    pub parent: String,
    /// The name of the key that tells it; the first stands.
    pub key_name: String,
    /// `experiment_id` and `arm` in it make the run part of an experiment.
    pub metadata: Map<String, Value>,
}
