//! Sample rows. Every field has a distinct value, so that mixed-up columns are detected.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use rb_store::{
    Change, Evidence, FindingRow, KeyRow, PatternFilter, PatternRow, ProfileRow, RunKey, RunStart,
    Scope, Scores, StepRow, Tokens,
};

pub(super) const DAY_MS: i64 = 86_400_000;
/// Start time of the samples: 20,000 days after 1970.
pub(super) const T0: i64 = 20_000 * DAY_MS;
/// More rows than any check writes.
pub(super) const ALL: u32 = 1_000_000;

pub(super) fn key(org: &str, run_id: &str) -> RunKey {
    RunKey { org: org.to_owned(), run_id: run_id.to_owned() }
}

pub(super) fn a() -> Scope {
    Scope::org("a")
}

pub(super) fn project(org: &str, project: &str) -> Scope {
    Scope { org: Some(org.to_owned()), project: Some(project.to_owned()) }
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => Map::from_iter([("value".to_owned(), other)]),
    }
}

pub(super) fn start(org: &str, run_id: &str, at_ms: i64) -> RunStart {
    RunStart {
        run: key(org, run_id),
        project: "main".to_owned(),
        at_ms,
        agent_name: "fixer".to_owned(),
        task: format!("Repair the parser of {run_id}"),
        model: "model-a".to_owned(),
        framework: "langchain".to_owned(),
        codebase: "parser".to_owned(),
        task_profile: "coding".to_owned(),
        parent: "above".to_owned(),
        key_name: "ci".to_owned(),
        metadata: object(json!({ "rb_version": "0.2.5", "nested": { "list": [1, null, "x"] } })),
    }
}

pub(super) fn begins(start: RunStart) -> Change {
    Change::StartRun(Box::new(start))
}

pub(super) fn in_experiment(mut start: RunStart, experiment: &str, arm: &str) -> RunStart {
    start.metadata = object(json!({ "experiment_id": experiment, "arm": arm }));
    start
}

/// Returns a step on which a monitor fired and guidance was injected.
pub(super) fn step(org: &str, run_id: &str, step_index: u32) -> StepRow {
    StepRow {
        run: key(org, run_id),
        project: "main".to_owned(),
        step_index,
        at_ms: T0 + 1_000 * i64::from(step_index),
        user_input: "Repair the parser".to_owned(),
        thought: format!("Step {step_index}: perhaps the lexer."),
        action: Some("edit".to_owned()),
        action_input: Some(r#"{"path":"src/lex.rs"}"#.to_owned()),
        input_is_structured: true,
        observation: Some("error: unexpected token".to_owned()),
        is_error: true,
        model: "model-b".to_owned(),
        tokens: Tokens { total: 115, input: 100, output: 15, cache_read: 40, cache_write: 7 },
        cost_usd: 0.001_25,
        scores: Scores::from([("repeat".into(), 0.7), ("drift".into(), 0.4)]),
        total_score: 0.55,
        fired: vec!["repeat".to_owned()],
        evidence: vec![Evidence {
            monitor: "repeat".to_owned(),
            score: 0.7,
            text: "The same edit for the third time.".to_owned(),
            steps: vec![0, 1],
        }],
        injections: vec!["Look at the lexer's tests.".to_owned(), "[e1:p-1]".to_owned()],
        injection_sources: vec!["E1Injection".to_owned()],
        intervention_texts: vec!["Try another file.".to_owned()],
        monitors_fired: vec!["theirs".to_owned()],
        failure_type: Some("loop".to_owned()),
        state: "STEERING".to_owned(),
        metadata: object(json!({ "latency_ms": 12.5 })),
        replay: Some("{\"found\":[]}".to_owned()),
    }
}

/// Returns an empty step.
pub(super) fn quiet(org: &str, run_id: &str, step_index: u32) -> StepRow {
    let at_ms = T0 + 1_000 * i64::from(step_index);
    StepRow { run: key(org, run_id), step_index, at_ms, ..StepRow::default() }
}

pub(super) fn puts(step: StepRow) -> Change {
    Change::PutStep(Arc::new(step))
}

pub(super) fn ends(org: &str, run_id: &str, at_ms: i64, outcome: &str) -> Change {
    Change::FinishRun { run: key(org, run_id), at_ms, outcome: outcome.to_owned() }
}

/// Returns a filter for all patterns.
pub(super) fn patterns() -> PatternFilter {
    PatternFilter { count_max: ALL, ..PatternFilter::default() }
}

pub(super) fn pattern(org: &str, tier: &str, pattern_id: &str) -> PatternRow {
    PatternRow {
        org: org.to_owned(),
        tier: tier.to_owned(),
        pattern_id: pattern_id.to_owned(),
        failure_type: Some("loop".to_owned()),
        model_family: Some("opus".to_owned()),
        source_trace_id: Some("trace-1".to_owned()),
        gate_threshold: Some(0.82),
        context: "the same edit again and again".to_owned(),
        fields: object(json!({ "advice": "Read the test first." })),
        created_ms: T0,
        updated_ms: T0 + 1,
        uses: 0,
        used_ms: None,
    }
}

pub(super) fn finding(org: &str, codebase: &str, finding_id: &str, file_path: &str) -> FindingRow {
    FindingRow {
        org: org.to_owned(),
        codebase: codebase.to_owned(),
        finding_id: finding_id.to_owned(),
        content: format!("{finding_id} is about {file_path}"),
        file_path: file_path.to_owned(),
        finding_type: "note".to_owned(),
        metadata: object(json!({ "line": 12 })),
        created_ms: T0,
        updated_ms: T0 + 1,
    }
}

pub(super) fn profile(org: &str, project: &str, profile_id: &str) -> ProfileRow {
    ProfileRow {
        org: org.to_owned(),
        project: project.to_owned(),
        profile_id: profile_id.to_owned(),
        description: "For reviews".to_owned(),
        weights: BTreeMap::from([("repeat".to_owned(), 0.25), ("drift".to_owned(), 0.75)]),
        extra: object(json!({ "base": "coding" })),
        created_ms: T0,
        updated_ms: T0 + 1,
    }
}

pub(super) fn api_key(org: &str, key_id: &str) -> KeyRow {
    KeyRow {
        key_id: key_id.to_owned(),
        name: "laptop".to_owned(),
        shown: "rb_live_abc".to_owned(),
        hash: format!("hash of {key_id}"),
        org: org.to_owned(),
        project: "main".to_owned(),
        created_ms: T0,
        revoked_ms: None,
    }
}
