//! Import of recorded runs: assessed like `rb check` does, without guidance.
//!
//! An `ImportedRun` is built from a parsed run on any thread. `plan` compares it with the store and returns the
//! missing changes: a run imported before is updated, never duplicated, and a live run is never changed.

/// Difference between an imported run and the store.
mod diff;
/// Fingerprints that identify a run across imports.
mod identity;
/// Import into a store that is in use.
mod live;
/// Ids of runs without an id.
mod naming;
#[cfg(test)]
mod tests;
/// Batched writes.
mod writer;

use std::sync::{Arc, LazyLock};

use rb_engine::config::Engine;
use rb_engine::config::weights::Weights;
use rb_engine::policy::Policy;
use rb_engine::policy::fsm::{Fsm, Limits};
use rb_engine::run::MonitorSet;
use rb_store::{RunKey, RunStart, StepRow, Tokens};
use rb_wire::model::{RecordedUsage, Run, RunInput, RunStep};
use serde_json::{Map, Value, json};

pub use diff::{ImportOutcome, ImportPlan, imported_step_count, plan};
pub use naming::{fallback_run_id, file_stem};
pub use writer::{ImportSummary, ImportWriter};

use crate::limits::{
    MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_SHORT_CHARS, MAX_TASK_CHARS, MAX_TEXT_CHARS,
};
use crate::prices::Prices;
use crate::retrieval::embedding;
use crate::runs::{assessment, step_of};

/// Metadata key of the source of an imported run.
const IMPORTED: &str = "imported";
/// Maximum bytes of benchmark labels; longer ones are omitted.
const MAX_LABELS_BYTES: usize = 64 << 10;

/// Engine of `rb check`: default policy and weights.
static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| {
    assessment::run_engine(
        &embedding::builtin(),
        Policy::default(),
        Weights::default(),
        &Map::new(),
    )
});

/// Owner and source of an imported run.
#[derive(Debug, Clone, Copy)]
pub struct ImportSource<'a> {
    pub org: &'a str,
    pub project: &'a str,
    /// Id of the importer.
    pub format: &'a str,
    /// Display name of the file; empty for other sources.
    pub file: &'a str,
    /// Id of a run without an id.
    pub fallback_id: &'a str,
}

/// Rows of a recorded run.
#[derive(Debug, Clone)]
pub struct ImportedRun {
    start: RunStart,
    steps: Vec<StepRow>,
    /// Time and outcome, if the source has them.
    end: Option<(i64, String)>,
    /// The source has no times.
    is_timeless: bool,
    fingerprint: String,
}

impl ImportedRun {
    /// Assesses a run; `None` without steps.
    pub fn assess(run: &Run<'_>, source: &ImportSource<'_>, prices: &Prices) -> Option<Self> {
        Self::assess_after(run, source, prices, Vec::new())
    }

    /// Assesses a run that continues stored steps; its first steps may repeat the last stored ones.
    pub fn assess_after(
        run: &Run<'_>,
        source: &ImportSource<'_>,
        prices: &Prices,
        before: Vec<StepRow>,
    ) -> Option<Self> {
        if run.steps.is_empty() {
            return None;
        }
        let fingerprint = identity::fingerprint(run, source);
        let start = start(run, source, &fingerprint);
        let mut new = rows(run, &start, &before);
        assign_costs(run, &mut new, prices);
        let mut steps = before;
        steps.append(&mut new);
        let ended_ms = run.ended_ms.and_then(|ms| i64::try_from(ms).ok());
        let last_ms = steps.last().map_or(start.at_ms, |step| step.at_ms);
        let end = run.outcome.as_deref().map(|outcome| {
            (ended_ms.unwrap_or(last_ms).max(start.at_ms), truncated(outcome, MAX_SHORT_CHARS))
        });
        let is_timeless = started_ms(run).is_none();
        Some(Self { start, steps, end, is_timeless, fingerprint })
    }

    /// Returns `true` if the run could be stored under this key.
    pub fn may_share_id(&self, run: &RunKey) -> bool {
        let own = &self.start.run;
        run.org == own.org && run.run_id.starts_with(&own.run_id)
    }

    /// Number of steps.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Fired monitors, each once.
    pub fn fired(&self) -> impl Iterator<Item = &str> {
        let mut all: Vec<&str> =
            self.steps.iter().flat_map(|step| step.fired.iter().map(String::as_str)).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }
}

fn start(run: &Run<'_>, source: &ImportSource<'_>, fingerprint: &str) -> RunStart {
    let text =
        |text: Option<&str>, max_chars: usize| truncated(text.unwrap_or_default(), max_chars);
    RunStart {
        run: RunKey { org: source.org.to_owned(), run_id: identity::run_id(run, source) },
        project: source.project.to_owned(),
        at_ms: started_ms(run).unwrap_or_default(),
        agent_name: text(run.agent.as_deref().or(Some(source.format)), MAX_NAME_CHARS),
        task: text(run.task.as_deref(), MAX_TASK_CHARS),
        model: text(run.model.as_deref(), MAX_MODEL_CHARS),
        framework: truncated(source.format, MAX_SHORT_CHARS),
        parent: text(run.parent_id.as_deref(), MAX_NAME_CHARS),
        metadata: metadata(run, source, fingerprint),
        ..RunStart::default()
    }
}

fn metadata(run: &Run<'_>, source: &ImportSource<'_>, fingerprint: &str) -> Map<String, Value> {
    let mut all = Map::new();
    let imported =
        json!({ "format": source.format, "file": source.file, "fingerprint": fingerprint });
    all.insert(IMPORTED.to_owned(), imported);
    let named = [("session_id", &run.session_id), ("dataset", &run.dataset)];
    for (key, value) in named {
        if let Some(value) = value {
            all.insert(key.to_owned(), Value::String(truncated(value, MAX_NAME_CHARS)));
        }
    }
    let labels = run.labels.as_deref().filter(|labels| labels.len() <= MAX_LABELS_BYTES);
    if let Some(Ok(labels)) = labels.map(serde_json::from_str) {
        all.insert("labels".to_owned(), labels);
    }
    all
}

/// Earliest known time of the run.
fn started_ms(run: &Run<'_>) -> Option<i64> {
    let first = || run.steps.iter().find_map(|step| step.at_ms);
    run.started_ms.or_else(first).or(run.ended_ms).and_then(|ms| i64::try_from(ms).ok())
}

/// Rows of the steps after `before`, with their scores.
fn rows(run: &Run<'_>, start: &RunStart, before: &[StepRow]) -> Vec<StepRow> {
    let mut monitors = MonitorSet::new(&ENGINE, run.task.as_deref().unwrap_or_default());
    let mut fsm = Fsm::new(Limits::default());
    for row in before {
        let assessment = monitors.observe(&step_of(row).unwrap_or_default());
        fsm.observe(assessment.difficulty);
    }
    let mut at_ms = start.at_ms;
    let known = overlap(before, run, start);
    let first = before.last().map_or(0, |row| row.step_index.saturating_add(1));
    let judged = run.steps.iter().skip(known).zip(first..).map(|(step, step_index)| {
        let assessment = monitors.observe(&step.step());
        // A step without a time has the time of its predecessor.
        at_ms = step.at_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(at_ms);
        StepRow {
            step_index,
            at_ms,
            state: fsm.observe(assessment.difficulty).name().to_owned(),
            scores: assessment::scores(&assessment),
            total_score: assessment.composite,
            fired: assessment::fired(&assessment),
            evidence: assessment::recorded_evidence(&assessment, |position| position),
            ..to_row(step, start)
        }
    });
    judged.collect()
}

/// Number of first steps of the run that repeat the last steps of `before`.
fn overlap(before: &[StepRow], run: &Run<'_>, start: &RunStart) -> usize {
    if before.is_empty() {
        return 0;
    }
    let new: Vec<StepRow> = run.steps.iter().map(|step| to_row(step, start)).collect();
    let is_same = |(a, b): (&StepRow, &StepRow)| {
        (&a.thought, &a.action, &a.action_input) == (&b.thought, &b.action, &b.action_input)
    };
    let ends_with = |count: &usize| before[before.len() - count..].iter().zip(&new).all(is_same);
    (0..=before.len().min(new.len())).rev().find(ends_with).unwrap_or_default()
}

/// Converts a step to a row without scores.
fn to_row(step: &RunStep<'_>, start: &RunStart) -> StepRow {
    let (action_input, input_is_structured) = match &step.input {
        RunInput::None => (None, false),
        RunInput::Text(text) => (Some(text), false),
        RunInput::Structured(json) => (Some(json), true),
    };
    let some =
        |text: &str, max_chars| Some(truncated(text, max_chars)).filter(|text| !text.is_empty());
    let model = step.model.as_deref().map(|model| truncated(model, MAX_MODEL_CHARS));
    StepRow {
        run: start.run.clone(),
        project: start.project.clone(),
        user_input: truncated(&step.user_input, MAX_TEXT_CHARS),
        thought: truncated(&step.thought, MAX_TEXT_CHARS),
        action: some(&step.tool, MAX_NAME_CHARS),
        action_input: action_input.map(|text| truncated(text, MAX_TEXT_CHARS)),
        input_is_structured,
        observation: some(&step.observation, MAX_TEXT_CHARS),
        is_error: step.is_error,
        model: model.unwrap_or_else(|| start.model.clone()),
        tokens: tokens(step.usage),
        // NaN marks an unknown cost for `assign_costs`.
        cost_usd: step.cost_usd.filter(|cost| *cost >= 0.0).unwrap_or(f64::NAN),
        ..StepRow::default()
    }
}

/// Assigns costs so that the steps add up to the totals of the run: the last step gets the excess tokens, and computed
/// costs are scaled to a known total.
fn assign_costs(run: &Run<'_>, rows: &mut [StepRow], prices: &Prices) {
    let known = rows.iter().fold(Tokens::default(), |sum, row| add(sum, row.tokens));
    if let Some(last) = rows.last_mut() {
        last.tokens = add(last.tokens, excess(tokens(run.usage), known));
    }
    for row in rows.iter_mut().filter(|row| !row.cost_usd.is_finite()) {
        row.cost_usd = prices.cost_usd(&row.model, &row.tokens, row.at_ms);
    }
    let Some(total) = run.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0) else { return };
    let sum: f64 = rows.iter().map(|row| row.cost_usd).sum();
    if sum > 0.0 {
        for row in rows {
            row.cost_usd *= total / sum;
        }
    } else if let Some(last) = rows.last_mut() {
        last.cost_usd = total;
    }
}

fn tokens(usage: RecordedUsage) -> Tokens {
    let (input, output) =
        (usage.input_tokens.unwrap_or_default(), usage.output_tokens.unwrap_or_default());
    Tokens {
        total: input.saturating_add(output),
        input,
        output,
        cache_read: usage.cache_read_tokens.unwrap_or_default(),
        cache_write: usage.cache_write_tokens.unwrap_or_default(),
    }
}

fn add(a: Tokens, b: Tokens) -> Tokens {
    Tokens {
        total: a.total.saturating_add(b.total),
        input: a.input.saturating_add(b.input),
        output: a.output.saturating_add(b.output),
        cache_read: a.cache_read.saturating_add(b.cache_read),
        cache_write: a.cache_write.saturating_add(b.cache_write),
    }
}

/// Tokens of the total that the parts do not account for.
fn excess(total: Tokens, parts: Tokens) -> Tokens {
    let (input, output) =
        (total.input.saturating_sub(parts.input), total.output.saturating_sub(parts.output));
    Tokens {
        total: input.saturating_add(output),
        input,
        output,
        cache_read: total.cache_read.saturating_sub(parts.cache_read),
        cache_write: total.cache_write.saturating_sub(parts.cache_write),
    }
}

/// Truncates to `max_chars` characters.
fn truncated(text: &str, max_chars: usize) -> String {
    let end = if text.len() <= max_chars { None } else { text.char_indices().nth(max_chars) };
    end.map_or(text, |(end, _)| &text[..end]).to_owned()
}
