//! Columns of each row type, listed once for reading, writing and SQL.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::value::{Columns, Converted, Field, Value, next, to_json};
use crate::health_rollup::RunHealth;
use crate::numeric::{count_from_db, from_nano, to_nano};
use crate::run_metadata::RunDescription;
use crate::run_totals::{RunTotals, StepContribution, by_model, shown, with_cost};
use crate::{
    ConversationRow, ExperimentRun, FindingRow, KeyRow, ModelTokens, OperatorMessageRow,
    PatternRow, ProfileRow, RunRow, StepRow, UsageDay,
};

/// Row type that is read from columns in a fixed order.
pub(crate) trait Row: Sized {
    /// Column names of each field.
    const COLUMNS: &'static [&'static [&'static str]];
    fn read(columns: &mut dyn Columns) -> Converted<Self>;
}

/// Row type that is also written.
pub(crate) trait Table: Row {
    const NAME: &'static str;
    /// Number of leading columns that form the primary key.
    const KEY: usize;
    /// PostgreSQL types of the columns of each field.
    const TYPES: &'static [&'static [&'static str]];
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()>;
}

/// Column names of a field: the name of the field unless others are listed.
macro_rules! names {
    ($field:ident) => { &[stringify!($field)] };
    ($field:ident [$($column:literal),+]) => { &[$($column),+] };
}

macro_rules! read {
    ($columns:ident) => {
        next($columns)?
    };
    ($columns:ident $reader:ident) => {
        $reader($columns)?
    };
}

/// Implements [`Row`]. `field ["a", "b"]` names the columns, and `field = f` reads them with `f`.
macro_rules! row {
    ($kind:ty { $($field:ident $([$($column:literal),+])? $(= $reader:ident)?),+ $(,)? }) => {
        impl Row for $kind {
            const COLUMNS: &'static [&'static [&'static str]] =
                &[$(names!($field $([$($column),+])?)),+];

            fn read(columns: &mut dyn Columns) -> Converted<Self> {
                let mut row = Self::default();
                $(row.$field = read!(columns $($reader)?);)+
                Ok(row)
            }
        }
    };
}

/// Type list of a field, from the type of the reference.
const fn types_of<R, T: Field>(_: fn(&R) -> &T) -> &'static [&'static str] {
    T::TYPES
}

/// Implements [`Row`] and [`Table`].
macro_rules! table {
    ($kind:ty, $table:literal, $key:literal { $($field:ident $([$($column:literal),+])?),+ $(,)? }) => {
        row!($kind { $($field $([$($column),+])?),+ });

        impl Table for $kind {
            const NAME: &'static str = $table;
            const KEY: usize = $key;
            const TYPES: &'static [&'static [&'static str]] =
                &[$(types_of(|row: &$kind| &row.$field)),+];

            fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()> {
                $(self.$field.write(values)?;)+
                Ok(())
            }
        }
    };
}

table!(KeyRow, "keys", 1 { key_id, name, shown, hash, org, project, created_ms, revoked_ms, });
table!(FindingRow, "findings", 3 {
    org, codebase, finding_id, file_path, finding_type, created_ms, updated_ms, metadata, content,
});
table!(ProfileRow, "profiles", 3 {
    org, project, profile_id, description, weights, extra, created_ms, updated_ms,
});
table!(PatternRow, "patterns", 3 {
    org, tier, pattern_id, failure_type, model_family, source_trace_id, gate_threshold, context,
    fields, created_ms, updated_ms, uses, used_ms,
});
table!(OperatorMessageRow, "operator_messages", 3 {
    run ["org", "run_id"], message_id, text, at_ms,
});
table!(ConversationRow, "conversations", 2 {
    run ["org", "run_id"], head, answer, mark, state, at_ms,
});
// Without the columns `run`, `injected` and `scores`; see `step_values`.
table!(StepRow, "steps", 1 {
    step_index, at_ms, total_score, cost_usd,
    tokens ["tokens_total", "tokens_input", "tokens_output", "cache_read", "cache_write"],
    model, fired, is_error, input_is_structured, failure_type, action, monitors_fired,
    injection_sources, injections, intervention_texts, evidence, metadata, replay, project,
    user_input, thought, action_input, observation, state,
});
table!(RunDescription, "runs", 0 {
    project, agent_name, task, model, framework, codebase, task_profile, parent, key_name, metadata,
});
table!(RunTotals, "runs", 0 {
    steps ["step_count"], injected_steps, fired_steps, warn_steps, danger_steps, score_nano,
    score_peak,
    tokens_and_cost ["tokens_total", "tokens_input", "tokens_output", "cache_read", "cache_write",
        "cost_nano"],
    monitors, models,
});
row!(UsageDay { day, interventions, steps, tokens });
row!(RunRow {
    run ["org", "run_id"], version, project, agent_name, task, model, framework, codebase,
    task_profile, parent, key_name, metadata, started_ms, seen_ms, finished_ms, outcome, step_count,
    score_sum ["score_nano"] = nano, score_peak,
    tokens ["tokens_total", "tokens_input", "tokens_output", "cache_read", "cache_write"],
    cost_usd ["cost_nano"] = nano, injected_steps, fired ["monitors"] = fired_steps,
    high_scores ["monitors"] = high_score_steps,
});
row!(ExperimentRun {
    run_id, arm, outcome, task_profile, started_ms, step_count, score_sum ["score_nano"] = nano,
    score_peak, injected_steps, fired_steps, by_model ["model", "models"] = model_tokens,
});
row!(RunHealth {
    outcome, started_ms, steps ["step_count"], fired_steps, warn_steps, danger_steps, score_nano,
    score_peak,
    tokens ["tokens_total", "tokens_input", "tokens_output", "cache_read", "cache_write"],
    cost_nano, framework, monitors,
});

fn nano(columns: &mut dyn Columns) -> Converted<f64> {
    next(columns).map(from_nano)
}

/// Reads the number of steps on which each monitor fired.
fn fired_steps(columns: &mut dyn Columns) -> Converted<BTreeMap<String, u64>> {
    monitor_steps(columns, |[fired, ..]| fired)
}

/// Reads the number of steps on which each monitor had a high score.
fn high_score_steps(columns: &mut dyn Columns) -> Converted<BTreeMap<String, u64>> {
    monitor_steps(columns, |[.., danger]| danger)
}

fn monitor_steps(
    columns: &mut dyn Columns,
    count: impl Fn([i64; 4]) -> i64,
) -> Converted<BTreeMap<String, u64>> {
    let monitors: BTreeMap<String, [i64; 4]> = next(columns)?;
    let counts = monitors.into_iter().map(|(name, counts)| (name, count_from_db(count(counts))));
    Ok(counts.filter(|(_, steps)| *steps > 0).collect())
}

fn model_tokens(columns: &mut dyn Columns) -> Converted<Vec<ModelTokens>> {
    Ok(by_model(next(columns)?, next(columns)?))
}

impl Row for StepContribution<'static> {
    const COLUMNS: &'static [&'static [&'static str]] = &[&[
        "total_score",
        "tokens_total",
        "tokens_input",
        "tokens_output",
        "cache_read",
        "cache_write",
        "cost_usd",
        "injected",
        "model",
        "scores",
        "fired",
        "injections",
    ]];

    fn read(columns: &mut dyn Columns) -> Converted<Self> {
        Ok(Self {
            score: next(columns)?,
            tokens_and_cost: with_cost(next(columns)?, to_nano(next(columns)?)),
            injected: next(columns)?,
            model: Cow::Owned(next(columns)?),
            scores: Cow::Owned(next(columns)?),
            fired: next::<Vec<String>>(columns)?.into_iter().map(Cow::Owned).collect(),
            patterns: shown(&next::<Vec<String>>(columns)?),
        })
    }
}

/// Columns of a step besides those of [`StepRow`], with their types.
pub(crate) const STEP_EXTRAS: [(&str, &str); 3] =
    [("run", "bigint"), ("injected", "bool"), ("scores", "text")];

/// Returns the values of [`STEP_EXTRAS`] and of the step. Non-finite scores are left out.
pub(crate) fn step_values(run: i64, step: &StepRow) -> Converted<Vec<Value<'_>>> {
    let scores = if step.scores.values().all(|score| score.is_finite()) {
        Cow::Borrowed(&step.scores)
    } else {
        let mut scores = step.scores.clone();
        scores.retain(|_, score| score.is_finite());
        Cow::Owned(scores)
    };
    let scores = to_json(&*scores, scores.is_empty())?;
    let mut values = Vec::with_capacity(32);
    values.extend([Value::Int(run), Value::Bool(step.is_injected()), scores]);
    step.write(&mut values)?;
    Ok(values)
}

/// Returns the column names of a row type.
pub(crate) fn names<R: Row>() -> impl Iterator<Item = &'static str> {
    R::COLUMNS.iter().copied().flatten().copied()
}

/// Returns the column names with their types.
pub(crate) fn typed<T: Table>() -> impl Iterator<Item = (&'static str, &'static str)> {
    names::<T>().zip(T::TYPES.iter().copied().flatten().copied())
}

/// Returns `a, b, c`, each with a prefix such as `r.`.
pub(crate) fn list<R: Row>(prefix: &str) -> String {
    let mut list = String::with_capacity(512);
    for name in names::<R>() {
        let separator = if list.is_empty() { "" } else { ", " };
        list.extend([separator, prefix, name]);
    }
    list
}

/// Joins with commas.
pub(crate) fn join(parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut joined = String::new();
    for part in parts {
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(part.as_ref());
    }
    joined
}

/// Returns the start of an insert: `INTO t (a, b) VALUES (?, ?)`.
pub(crate) fn into<T: Table>() -> String {
    let values = join(names::<T>().map(|_| "?"));
    format!("INTO {} ({}) VALUES ({values})", T::NAME, list::<T>(""))
}

/// Returns an insert that updates the row with the same key.
pub(crate) fn upsert<T: Table>() -> String {
    let updates = join(names::<T>().skip(T::KEY).map(|name| format!("{name} = excluded.{name}")));
    let keys = join(names::<T>().take(T::KEY));
    format!("INSERT {} ON CONFLICT ({keys}) DO UPDATE SET {updates}", into::<T>())
}
