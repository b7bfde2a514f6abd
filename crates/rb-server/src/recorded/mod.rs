//! Recorded runs on their way into the store: judged by the engine as `rb check` does, and nothing said to anybody.
//!
//! A `Recorded` is made from what an importer read, on any core. `plan` then compares it with what the store has, and
//! answers the changes that are left to make: a run that was taken before is brought up to date, never doubled, and a run
//! that was watched live is never touched.

/// Whether two recordings are of one run.
mod identity;
/// What runs without a name are called.
mod place;
/// What is left to write.
mod plan;
/// Into the store.
mod shelf;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use rb_engine::config::Engine;
use rb_engine::config::weights::Weights;
use rb_engine::run::MonitorSet;
use rb_store::{RunKey, RunStart, StepRow, Tokens};
use rb_wire::transcripts::{Run, RunInput, RunStep, Usage};
use serde_json::{Map, Value, json};

pub use place::{place, stem};
pub use plan::{Kept, Planned, plan};
pub(crate) use plan::{stored_steps, taken_steps};
pub use shelf::{Shelf, Tally};

use crate::api::cut::{
    MODEL_CHARS_MAX, NAME_CHARS_MAX, SHORT_CHARS_MAX, TASK_CHARS_MAX, TEXT_CHARS_MAX,
};
use crate::judge;
use crate::live::step_of;
use crate::prices::Prices;
use crate::seconded;

/// Under this name a run's metadata says where it was read.
const IMPORTED: &str = "imported";
/// Labels of a benchmark may be long; longer ones stay in their file.
const LABELS_BYTES_MAX: usize = 64 << 10;

/// The rules of `rb check`: both suites, default weights, nothing to say.
static RULES: LazyLock<Arc<Engine>> =
    LazyLock::new(|| judge::rules_of_run(&seconded::packed(), Weights::default(), &Map::new()));

/// Whose a recorded run is, and where it was read.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub org: &'a str,
    pub project: &'a str,
    /// The importer that read it.
    pub format: &'a str,
    /// As people know it; empty if it was no file.
    pub file: &'a str,
    /// What to call a run that has no name of its own.
    pub place: &'a str,
}

/// A recorded run as it would be stored.
#[derive(Debug, Clone)]
pub struct Recorded {
    start: RunStart,
    steps: Vec<StepRow>,
    /// How it ended, and when, where the source says so.
    end: Option<(i64, String)>,
    /// The source tells no times at all.
    is_timeless: bool,
    fingerprint: String,
}

impl Recorded {
    /// Judges a run; `None` if it has no steps.
    pub fn judge(run: &Run<'_>, origin: &Origin<'_>, prices: &Prices) -> Option<Self> {
        Self::judge_after(run, origin, prices, Vec::new())
    }

    /// Judges a run that goes on where stored steps end. The first of its own may be the last of them once more.
    pub(crate) fn judge_after(
        run: &Run<'_>,
        origin: &Origin<'_>,
        prices: &Prices,
        before: Vec<StepRow>,
    ) -> Option<Self> {
        if run.steps.is_empty() {
            return None;
        }
        let fingerprint = identity::fingerprint(run, origin);
        let start = start(run, origin, &fingerprint);
        let mut new = rows(run, &start, &before);
        charge(run, &mut new, prices);
        let mut steps = before;
        steps.append(&mut new);
        let ended_ms = run.ended_ms.and_then(|ms| i64::try_from(ms).ok());
        let last_ms = steps.last().map_or(start.at_ms, |step| step.at_ms);
        let end = run.outcome.as_deref().map(|outcome| {
            (ended_ms.unwrap_or(last_ms).max(start.at_ms), cut(outcome, SHORT_CHARS_MAX))
        });
        let is_timeless = started_ms(run).is_none();
        Some(Self { start, steps, end, is_timeless, fingerprint })
    }

    /// Whether it could be stored under this name.
    pub fn may_be(&self, run: &RunKey) -> bool {
        let mine = &self.start.run;
        run.org == mine.org && run.run_id.starts_with(&mine.run_id)
    }

    /// How many steps it has.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// The monitors that fired, each once.
    pub fn fired(&self) -> impl Iterator<Item = &str> {
        let mut all: Vec<&str> =
            self.steps.iter().flat_map(|step| step.fired.iter().map(String::as_str)).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }
}

fn start(run: &Run<'_>, origin: &Origin<'_>, fingerprint: &str) -> RunStart {
    let text = |text: Option<&str>, chars_max: usize| cut(text.unwrap_or_default(), chars_max);
    RunStart {
        run: RunKey { org: origin.org.to_owned(), run_id: identity::name(run, origin) },
        project: origin.project.to_owned(),
        at_ms: started_ms(run).unwrap_or_default(),
        agent_name: text(run.agent.as_deref().or(Some(origin.format)), NAME_CHARS_MAX),
        task: text(run.task.as_deref(), TASK_CHARS_MAX),
        model: text(run.model.as_deref(), MODEL_CHARS_MAX),
        framework: cut(origin.format, SHORT_CHARS_MAX),
        parent: text(run.parent_id.as_deref(), NAME_CHARS_MAX),
        metadata: metadata(run, origin, fingerprint),
        ..RunStart::default()
    }
}

fn metadata(run: &Run<'_>, origin: &Origin<'_>, fingerprint: &str) -> Map<String, Value> {
    let mut all = Map::new();
    let from = json!({ "format": origin.format, "file": origin.file, "fingerprint": fingerprint });
    all.insert(IMPORTED.to_owned(), from);
    let named = [("session_id", &run.session_id), ("dataset", &run.dataset)];
    for (key, value) in named {
        if let Some(value) = value {
            all.insert(key.to_owned(), Value::String(cut(value, NAME_CHARS_MAX)));
        }
    }
    let labels = run.labels.as_deref().filter(|labels| labels.len() <= LABELS_BYTES_MAX);
    if let Some(Ok(labels)) = labels.map(serde_json::from_str) {
        all.insert("labels".to_owned(), labels);
    }
    all
}

/// When the run began, as far as anything in it says.
fn started_ms(run: &Run<'_>) -> Option<i64> {
    let first = || run.steps.iter().find_map(|step| step.at_ms);
    run.started_ms.or_else(first).or(run.ended_ms).and_then(|ms| i64::try_from(ms).ok())
}

/// The steps behind those before them, with what the monitors read.
fn rows(run: &Run<'_>, start: &RunStart, before: &[StepRow]) -> Vec<StepRow> {
    let mut panel = MonitorSet::new(&RULES, run.task.as_deref().unwrap_or_default());
    for row in before {
        let _ = panel.observe(&step_of(row).unwrap_or_default());
    }
    let mut at_ms = start.at_ms;
    let known = overlap(before, run, start);
    let first = before.last().map_or(0, |row| row.step_index.saturating_add(1));
    let judged = run.steps.iter().skip(known).zip(first..).map(|(step, step_index)| {
        let assessment = panel.observe(&step.step());
        // A step without a time was where the one before it was.
        at_ms = step.at_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(at_ms);
        StepRow {
            step_index,
            at_ms,
            scores: judge::scores(&assessment),
            total_score: assessment.composite,
            fired: judge::fired(&assessment),
            evidence: judge::evidence(&assessment, |position| position)
                .into_iter()
                .map(judge::Evidence::row)
                .collect(),
            ..told(step, start)
        }
    });
    judged.collect()
}

/// How many of a run's first steps are the last of those before it.
fn overlap(before: &[StepRow], run: &Run<'_>, start: &RunStart) -> usize {
    if before.is_empty() {
        return 0;
    }
    let new: Vec<StepRow> = run.steps.iter().map(|step| told(step, start)).collect();
    let is_same = |(a, b): (&StepRow, &StepRow)| {
        (&a.thought, &a.action, &a.action_input) == (&b.thought, &b.action, &b.action_input)
    };
    let ends_with = |count: &usize| before[before.len() - count..].iter().zip(&new).all(is_same);
    (0..=before.len().min(new.len())).rev().find(ends_with).unwrap_or_default()
}

/// What the source tells of a step.
fn told(step: &RunStep<'_>, start: &RunStart) -> StepRow {
    let (action_input, input_is_structured) = match &step.input {
        RunInput::None => (None, false),
        RunInput::Text(text) => (Some(text), false),
        RunInput::Structured(json) => (Some(json), true),
    };
    let some = |text: &str, chars_max| Some(cut(text, chars_max)).filter(|text| !text.is_empty());
    let model = step.model.as_deref().map(|model| cut(model, MODEL_CHARS_MAX));
    StepRow {
        run: start.run.clone(),
        project: start.project.clone(),
        user_input: cut(&step.user_input, TEXT_CHARS_MAX),
        thought: cut(&step.thought, TEXT_CHARS_MAX),
        action: some(&step.tool, NAME_CHARS_MAX),
        action_input: action_input.map(|text| cut(text, TEXT_CHARS_MAX)),
        input_is_structured,
        observation: some(&step.observation, TEXT_CHARS_MAX),
        is_error: step.is_error,
        model: model.unwrap_or_else(|| start.model.clone()),
        tokens: tokens(step.usage),
        // Not known yet where it is not a number; see `charge`.
        cost_usd: step.cost_usd.filter(|cost| *cost >= 0.0).unwrap_or(f64::NAN),
        ..StepRow::default()
    }
}

/// Says what each step cost, so that the steps add up to what the run says of itself: the last one gets what none of them
/// accounts for, and prices of our own give way to a sum that is known.
fn charge(run: &Run<'_>, rows: &mut [StepRow], prices: &Prices) {
    let known = rows.iter().fold(Tokens::default(), |sum, row| plus(sum, row.tokens));
    if let Some(last) = rows.last_mut() {
        last.tokens = plus(last.tokens, beyond(tokens(run.usage), known));
    }
    for row in rows.iter_mut().filter(|row| !row.cost_usd.is_finite()) {
        row.cost_usd = prices.cost_usd(&row.model, &row.tokens, row.at_ms);
    }
    let Some(whole) = run.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0) else { return };
    let sum: f64 = rows.iter().map(|row| row.cost_usd).sum();
    if sum > 0.0 {
        for row in rows {
            row.cost_usd *= whole / sum;
        }
    } else if let Some(last) = rows.last_mut() {
        last.cost_usd = whole;
    }
}

fn tokens(usage: Usage) -> Tokens {
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

fn plus(a: Tokens, b: Tokens) -> Tokens {
    Tokens {
        total: a.total.saturating_add(b.total),
        input: a.input.saturating_add(b.input),
        output: a.output.saturating_add(b.output),
        cache_read: a.cache_read.saturating_add(b.cache_read),
        cache_write: a.cache_write.saturating_add(b.cache_write),
    }
}

/// How far a whole goes beyond the sum of its parts.
fn beyond(whole: Tokens, parts: Tokens) -> Tokens {
    let (input, output) =
        (whole.input.saturating_sub(parts.input), whole.output.saturating_sub(parts.output));
    Tokens {
        total: input.saturating_add(output),
        input,
        output,
        cache_read: whole.cache_read.saturating_sub(parts.cache_read),
        cache_write: whole.cache_write.saturating_sub(parts.cache_write),
    }
}

/// At most so many characters.
fn cut(text: &str, chars_max: usize) -> String {
    let end = if text.len() <= chars_max { None } else { text.char_indices().nth(chars_max) };
    end.map_or(text, |(end, _)| &text[..end]).to_owned()
}
