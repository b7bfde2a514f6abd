//! JSON output: one object per run and line.

use rb_engine::evidence::Evidence;
use rb_engine::monitors::MonitorSpec;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::Subject;
use super::assess::{Fire, Verdict};

/// Returns the line of one run, including the line break.
pub(super) fn line(subject: &Subject<'_>, verdict: &Verdict) -> serde_json::Result<String> {
    let peak = verdict.peak();
    let run = RunLine {
        run_id: subject.run_id,
        file: subject.file,
        line: subject.line,
        outcome: subject.outcome,
        step_count: verdict.steps.len(),
        peak_composite: peak.map(|(_, composite)| composite),
        peak_step: peak.map(|(step, _)| step),
        fires: verdict.fires.iter().map(FireLine::of).collect(),
        signals: verdict.signals.iter().map(FireLine::of).collect(),
        retired: verdict.disabled.iter().map(|monitor| monitor.id).collect(),
        steps: Steps(verdict),
    };
    let mut line = serde_json::to_string(&run)?;
    line.push('\n');
    Ok(line)
}

#[derive(Serialize)]
struct RunLine<'a> {
    run_id: &'a str,
    file: &'a str,
    line: u64,
    outcome: Option<&'a str>,
    step_count: usize,
    peak_composite: Option<f64>,
    peak_step: Option<usize>,
    fires: Vec<FireLine<'a>>,
    /// Monitors at their thresholds that are only recorded.
    signals: Vec<FireLine<'a>>,
    /// Monitors that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retired: Vec<&'static str>,
    steps: Steps<'a>,
}

#[derive(Serialize)]
struct FireLine<'a> {
    monitor: &'static str,
    failure_type: &'static str,
    first_step: usize,
    last_step: usize,
    steps: u64,
    peak: f64,
    evidence: Option<EvidenceLine<'a>>,
}

#[derive(Serialize)]
struct EvidenceLine<'a> {
    kind: &'static str,
    steps: Vec<u32>,
    count: u32,
    limit: Option<u32>,
    tool: Option<&'a str>,
    path: Option<&'a str>,
    phrase: Option<&'a str>,
}

impl<'a> FireLine<'a> {
    fn of(fire: &'a Fire) -> Self {
        Self {
            monitor: fire.monitor.id,
            failure_type: fire.monitor.failure_type,
            first_step: fire.first_step,
            last_step: fire.last_step,
            steps: fire.steps,
            peak: fire.peak,
            evidence: fire.evidence.as_ref().map(EvidenceLine::of),
        }
    }
}

impl<'a> EvidenceLine<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        Self {
            kind: evidence.kind,
            steps: evidence.steps.iter().map(|step| step.0).collect(),
            count: evidence.count,
            limit: evidence.limit,
            tool: evidence.tool.as_deref(),
            path: evidence.path.as_deref(),
            phrase: evidence.phrase.as_deref(),
        }
    }
}

/// Serialises the steps one by one instead of collecting them, because runs can be long.
struct Steps<'a>(&'a Verdict);

#[derive(Serialize)]
struct StepLine<'a> {
    step_index: usize,
    difficulty: Option<f64>,
    fsm_state: &'static str,
    scores: Scores<'a>,
    composite: f64,
    fired: Vec<&'static str>,
    signals: Vec<&'static str>,
}

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verdict = self.0;
        let ids = |is_in: &dyn Fn(usize) -> bool| {
            let columns = verdict.monitors.iter().enumerate();
            columns.filter(|(column, _)| is_in(*column)).map(|(_, monitor)| monitor.id).collect()
        };
        serializer.collect_seq(verdict.steps.iter().enumerate().map(|(at, step)| StepLine {
            step_index: at,
            difficulty: step.difficulty,
            fsm_state: step.state.name(),
            scores: Scores(&verdict.monitors, verdict.scores(at)),
            composite: step.composite,
            fired: ids(&|column| step.fired(column)),
            signals: ids(&|column| step.is_signal(column)),
        }))
    }
}

struct Scores<'a>(&'a [&'static MonitorSpec], &'a [f64]);

impl Serialize for Scores<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (monitor, score) in self.0.iter().zip(self.1) {
            map.serialize_entry(monitor.id, score)?;
        }
        map.end()
    }
}
