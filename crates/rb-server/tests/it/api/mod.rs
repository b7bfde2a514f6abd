//! Tests of every route through the whole server, on a real database.

/// Permissions of keys on every route.
mod authorization;
/// Required routes of the description.
mod contract;
/// Experiments and the usage meter.
mod experiments;
/// Findings.
mod findings;
/// Recorded runs.
mod import;
/// Messages to running agents.
mod operator_messages;
/// Received OpenTelemetry spans.
mod otlp;
/// Export to a collector.
mod otlp_export;
/// Pattern library and complete traces.
mod patterns;
/// Profiles, monitors, keys, and the caller's identity.
mod profiles;
/// Stored runs.
mod runs;
/// Requests before each model call.
mod steering;
/// Telemetry of agents.
mod telemetry;

use std::sync::Arc;

use rb_store::{Change, RunKey, RunStart, StepRow, Tokens};
use serde_json::{Value, json};

use crate::test_server::Trial;

/// Returns the changes for a run with one step and an outcome, in the experiment `trial`.
pub(super) fn run(org: &str, project: &str, run_id: &str, at_ms: i64) -> Vec<Change> {
    let run = RunKey { org: org.to_owned(), run_id: run_id.to_owned() };
    let arm = if at_ms % 2 == 0 { "on" } else { "off" };
    let metadata = json!({"experiment_id": "trial", "arm": arm});
    let start = RunStart {
        run: run.clone(),
        project: project.to_owned(),
        at_ms,
        agent_name: "fixer".to_owned(),
        task: format!("fix {run_id}"),
        model: "gpt-4o".to_owned(),
        codebase: "org/repo".to_owned(),
        task_profile: "coding".to_owned(),
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        ..RunStart::default()
    };
    let step = StepRow {
        run: run.clone(),
        project: project.to_owned(),
        at_ms: at_ms + 10,
        thought: "look".to_owned(),
        action: Some("read".to_owned()),
        model: "gpt-4o".to_owned(),
        tokens: Tokens { total: 110, input: 100, output: 10, ..Tokens::default() },
        scores: [("streak".into(), 0.7)].into(),
        total_score: 0.123_45,
        fired: vec!["streak".to_owned()],
        injections: vec!["[monitor]".to_owned()],
        ..StepRow::default()
    };
    let finish = Change::FinishRun { run, at_ms: at_ms + 20, outcome: "success".to_owned() };
    vec![Change::StartRun(Box::new(start)), Change::PutStep(Arc::new(step)), finish]
}

/// Starts a server with one run each in two projects of `acme` and in `globex`.
pub(super) async fn with_runs() -> Trial {
    let trial = Trial::new().await;
    for (org, project, run_id, at_ms) in [
        ("acme", "alpha", "a/1", 1_000),
        ("acme", "beta", "a-2", 2_001),
        ("globex", "default", "g-1", 3_000),
    ] {
        trial.store().apply(run(org, project, run_id, at_ms)).await.unwrap();
    }
    trial
}

/// Returns the values of one field over a list.
pub(super) fn field(list: &Value, name: &str) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.map(|item| item[name].as_str().unwrap_or_default().to_owned()).collect()
}
