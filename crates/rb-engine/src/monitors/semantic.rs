//! The rows of the semantic suite whose monitors are not available yet: their weights are fixed by contract.

use super::{DEFAULT_FIRE_THRESHOLD, MonitorSpec, ProfileWeights, Suite};

const fn row(
    id: &'static str,
    summary: &'static str,
    failure_type: &'static str,
    weights: ProfileWeights,
) -> MonitorSpec {
    MonitorSpec {
        id,
        suite: Suite::Semantic,
        summary,
        fire_at: DEFAULT_FIRE_THRESHOLD,
        failure_type,
        weights,
        build: None,
        advice: |_| String::new(),
    }
}

pub(super) static CLAIM_CONTRADICTION: MonitorSpec = row(
    "claim_contradiction",
    "What the agent says contradicts what it said or saw.",
    "contradiction",
    ProfileWeights { coding: 0.30, pr_review: 0.20, qa: 0.40 },
);
pub(super) static SEMANTIC_LOOP: MonitorSpec = row(
    "semantic_loop",
    "The same act again, perhaps in other words, without anything new.",
    "semantic_loop",
    ProfileWeights { coding: 0.25, pr_review: 0.30, qa: 0.15 },
);
pub(super) static VERIFICATION_SKIP: MonitorSpec = row(
    "verification_skip",
    "The work is declared done with changes that nothing has checked.",
    "unverified_completion",
    ProfileWeights { coding: 0.15, pr_review: 0.10, qa: 0.05 },
);
pub(super) static CYCLIC_COMPRESSION: MonitorSpec = row(
    "cyclic_compression",
    "The same state is summed up and derived again without progress.",
    "context_churn",
    ProfileWeights { coding: 0.10, pr_review: 0.15, qa: 0.05 },
);
pub(super) static LATE_SPRAWL: MonitorSpec = row(
    "late_sprawl",
    "New tools, files and directions appear where the run should converge.",
    "late_sprawl",
    ProfileWeights { coding: 0.10, pr_review: 0.15, qa: 0.10 },
);
pub(super) static SILENT_TOPIC_DRIFT: MonitorSpec = row(
    "silent_topic_drift",
    "What is done moves away from the task without saying so.",
    "topic_drift",
    ProfileWeights { coding: 0.10, pr_review: 0.10, qa: 0.25 },
);
