//! Writes a unit of work: one statement per table with an array per column, all pipelined.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use futures_util::future::try_join_all;
use tokio::try_join;

use super::error::Sql;
use super::session::Session;
use super::unit_of_work::{Entry, UnitOfWork};
use super::usage;
use super::values::text;
use crate::numeric::day;
use crate::run_metadata::{RunDescription, class_number};
use crate::run_totals::{self, RunTotals, UsageDelta};
use crate::sql::{STEP_EXTRAS, Table, Value, join, step_values, typed};
use crate::{ConversationRow, OutcomeClass, RunKey, StepRow};

/// Rows of one table and the statement that writes them, with an array per column.
struct Batch<'a> {
    sql: &'static str,
    rows: Vec<Vec<Value<'a>>>,
}

/// Writes a unit of work, then sends `closing`. All statements are sent before the first response is awaited.
pub(super) async fn write(session: &Session, mut unit: UnitOfWork<'_>, closing: &str) -> Sql<()> {
    drop_untouched(session, &mut unit).await?;
    find_peaks(session, &mut unit).await?;
    let used = used(session, &unit).await?;
    let mut batches = Vec::new();
    for mut batch in batches_of(&unit, &used)? {
        if let Some(width) = batch.rows.first().map(Vec::len) {
            let mut columns: Vec<Vec<Value<'_>>> = (0..width).map(|_| Vec::new()).collect();
            for row in batch.rows.drain(..) {
                columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            }
            // Preparing awaits a response, so it must happen before pipelining; otherwise `closing` would be sent too
            // early.
            batches.push((session.prepare(batch.sql).await?, columns));
        }
    }
    let sent = batches.iter().map(|(statement, columns)| session.send_all(statement, columns));
    try_join!(biased; try_join_all(sent), session.batch(closing))?;
    Ok(())
}

/// Skips runs without applied changes and deletes those that `load` has created.
async fn drop_untouched(session: &Session, unit: &mut UnitOfWork<'_>) -> Sql<()> {
    let unused: Vec<i64> = unit
        .runs
        .values()
        .filter(|entry| entry.is_new() && !entry.is_touched())
        .map(|entry| entry.id)
        .collect();
    unit.runs.retain(|_, entry| entry.is_touched());
    if !unused.is_empty() {
        session.execute("DELETE FROM runs WHERE id = ANY ($1)", &[&unused]).await?;
    }
    Ok(())
}

/// Recomputes the peak score of runs whose highest step was replaced.
async fn find_peaks(session: &Session, unit: &mut UnitOfWork<'_>) -> Sql<()> {
    for entry in unit.runs.values_mut().filter(|entry| entry.is_peak_lost) {
        let replaced: Vec<i64> = entry.steps.keys().map(|index| i64::from(*index)).collect();
        let sql = "SELECT max(total_score) FROM steps WHERE run = $1 AND step_index <> ALL ($2)";
        let rows = session.select(sql, &[&entry.id, &replaced]).await?;
        let stored = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
        entry.find_peak(stored);
    }
    Ok(())
}

/// Sums the usage by organisation and day. A run that became part of an experiment subtracts its earlier usage.
async fn used<'a>(
    session: &Session,
    unit: &UnitOfWork<'a>,
) -> Sql<BTreeMap<(&'a str, i64), UsageDelta>> {
    let mut sums: BTreeMap<(&'a str, i64), UsageDelta> = BTreeMap::new();
    let mut to_subtract: BTreeMap<i64, &'a str> = BTreeMap::new();
    for (run, entry) in &unit.runs {
        for (day, used) in &entry.used {
            run_totals::add(sums.entry((run.org.as_str(), *day)).or_default(), *used);
        }
        if entry.must_subtract_usage() {
            to_subtract.insert(entry.id, run.org.as_str());
        }
    }
    if !to_subtract.is_empty() {
        let runs: Vec<i64> = to_subtract.keys().copied().collect();
        for (run, day, used) in usage::stored(session, &runs).await? {
            if let Some(org) = to_subtract.get(&run) {
                run_totals::add(sums.entry((org, day)).or_default(), used.map(|used| -used));
            }
        }
    }
    Ok(sums)
}

/// Column with its type.
type Typed = (&'static str, &'static str);

/// Returns `unnest($1::bigint[], …) AS u (run, …)`.
fn arrays(columns: &[Typed]) -> String {
    let given = (1..).zip(columns).map(|(at, (_, ty))| format!("${at}::{ty}[]"));
    format!("unnest({}) AS u ({})", join(given), names(columns))
}

fn names(columns: &[Typed]) -> String {
    join(columns.iter().map(|(name, _)| name))
}

/// Returns an upsert of many rows; the keys are left out of the update.
fn upsert(table: &str, keys: &[&str], columns: &[Typed]) -> String {
    let values = columns.iter().filter(|(name, _)| !keys.contains(name));
    format!(
        "INSERT INTO {table} ({}) SELECT * FROM {} ON CONFLICT ({}) DO UPDATE SET {}",
        names(columns),
        arrays(columns),
        join(keys),
        join(values.map(|(name, _)| format!("{name} = excluded.{name}")))
    )
}

/// Returns an update of many runs; the first column is `id`.
fn update_runs(columns: &[Typed]) -> String {
    let sets = columns.iter().skip(1).map(|(name, _)| format!("{name} = u.{name}"));
    format!("UPDATE runs r SET {} FROM {} WHERE r.id = u.id", join(sets), arrays(columns))
}

static PUT_STEPS: LazyLock<String> = LazyLock::new(|| {
    let columns: Vec<Typed> = STEP_EXTRAS.into_iter().chain(typed::<StepRow>()).collect();
    upsert("steps", &["run", "step_index"], &columns)
});
static PUT_CONVERSATIONS: LazyLock<String> = LazyLock::new(|| {
    let columns: Vec<Typed> = typed::<ConversationRow>().collect();
    upsert("conversations", &["org", "run_id"], &columns)
});
static PUT_SEARCH_TEXTS: LazyLock<String> =
    LazyLock::new(|| upsert("run_search", &["run"], &[("run", "bigint"), ("text", "text")]));
static UPDATE_TOTALS: LazyLock<String> = LazyLock::new(|| {
    let head = ["id", "version", "seen_ms", "seen_day"].map(|name| (name, "bigint"));
    update_runs(&head.into_iter().chain(typed::<RunTotals>()).collect::<Vec<_>>())
});
static UPDATE_DESCRIPTIONS: LazyLock<String> = LazyLock::new(|| {
    let columns = [("id", "bigint")].into_iter().chain(typed::<RunDescription>());
    let experiment = ["experiment_id", "arm"].map(|name| (name, "text"));
    update_runs(&columns.chain(experiment).collect::<Vec<_>>())
});
const END_RUNS: &str = "UPDATE runs r SET outcome = u.outcome, outcome_class = u.class,
        finished_ms = coalesce(r.finished_ms, u.at_ms)
    FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS u (id, outcome, class, at_ms)
    WHERE r.id = u.id";
const ADD_FIRED: &str = "INSERT INTO fired_runs (org, monitor, started_ms, run_id, run)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[])
    ON CONFLICT DO NOTHING";
const REMOVE_FIRED: &str =
    "DELETE FROM fired_runs f USING unnest($1::bigint[], $2::text[]) AS u (run, monitor)
    WHERE f.run = u.run AND f.monitor = u.monitor";
const ADD_SHOWN: &str = "INSERT INTO pattern_runs AS p (org, pattern, started_ms, run_id, run, steps)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[])
    ON CONFLICT (org, pattern, started_ms, run_id) DO UPDATE SET steps = p.steps + excluded.steps";
const REMOVE_SHOWN: &str =
    "DELETE FROM pattern_runs p USING unnest($1::bigint[], $2::text[]) AS u (run, pattern)
    WHERE p.run = u.run AND p.pattern = u.pattern AND p.steps <= 0";

/// Returns the rows to write in the order in which they are written. Rows of a table are in order of keys, which prevents
/// deadlocks.
fn batches_of<'b>(
    unit: &'b UnitOfWork<'_>,
    used: &BTreeMap<(&'b str, i64), UsageDelta>,
) -> Sql<Vec<Batch<'b>>> {
    let mut steps = Batch { sql: &PUT_STEPS, rows: Vec::new() };
    let mut totals = Batch { sql: &UPDATE_TOTALS, rows: Vec::new() };
    let mut descriptions = Batch { sql: &UPDATE_DESCRIPTIONS, rows: Vec::new() };
    let mut search_texts = Batch { sql: &PUT_SEARCH_TEXTS, rows: Vec::new() };
    let mut ends = Batch { sql: END_RUNS, rows: Vec::new() };
    let mut fired = Batch { sql: ADD_FIRED, rows: Vec::new() };
    let mut not_fired = Batch { sql: REMOVE_FIRED, rows: Vec::new() };
    let mut shown = Batch { sql: ADD_SHOWN, rows: Vec::new() };
    let mut not_shown = Batch { sql: REMOVE_SHOWN, rows: Vec::new() };
    for (run, entry) in &unit.runs {
        let id = || Value::Int(entry.id);
        for step in entry.steps.values() {
            steps.rows.push(step_values(entry.id, step)?);
        }
        let head = [entry.id, entry.version, entry.seen_ms, day(entry.seen_ms)];
        totals.rows.push(with_fields(head.map(Value::Int), &entry.totals)?);
        if entry.is_described {
            let mut row = with_fields([id()], &entry.description)?;
            let (experiment, arm) = (entry.description.experiment_id(), entry.description.arm());
            row.extend([experiment, arm].map(|text| Value::Text(text.into())));
            descriptions.rows.push(row);
        }
        if entry.is_new() || entry.is_described {
            let words = entry.description.search_text(&run.run_id);
            search_texts.rows.push(vec![id(), Value::Text(words.into())]);
        }
        if let Some((outcome, at_ms)) = entry.end {
            let class = class_number(OutcomeClass::of(Some(outcome)));
            ends.rows.push(vec![id(), text(outcome), Value::Int(class), Value::Int(at_ms)]);
        }
        let now = entry.totals.fired();
        for monitor in now.difference(&entry.fired_before) {
            fired.rows.push(row_of_run(run, entry, Value::text(monitor)));
        }
        for monitor in entry.fired_before.difference(&now) {
            not_fired.rows.push(vec![id(), Value::text(monitor)]);
        }
        for (pattern, steps) in entry.shown.iter().filter(|(_, steps)| **steps != 0) {
            let mut row = row_of_run(run, entry, text(pattern));
            row.push(Value::Int(*steps));
            shown.rows.push(row);
            if *steps < 0 {
                not_shown.rows.push(vec![id(), text(pattern)]);
            }
        }
    }
    let conversations = unit.conversations.values().map(|row| with_fields([], *row));
    let conversations =
        Batch { sql: &PUT_CONVERSATIONS, rows: conversations.collect::<Sql<Vec<_>>>()? };
    let used = Batch { sql: usage::ADD, rows: usage::rows(used) };
    let of_runs =
        [steps, totals, descriptions, search_texts, ends, fired, not_fired, shown, not_shown];
    Ok(of_runs.into_iter().chain([conversations, used]).collect())
}

/// Appends the fields of a row to the leading values.
fn with_fields<'a, const N: usize>(
    head: [Value<'a>; N],
    row: &'a impl Table,
) -> Sql<Vec<Value<'a>>> {
    let mut values = Vec::from(head);
    row.write(&mut values)?;
    Ok(values)
}

/// Returns organisation, name, start time, id and row id of a run, for the tables of runs by monitor and pattern.
fn row_of_run<'a>(run: &'a RunKey, entry: &Entry<'_>, name: Value<'a>) -> Vec<Value<'a>> {
    let (started_ms, id) = (Value::Int(entry.started_ms), Value::Int(entry.id));
    vec![text(&run.org), name, started_ms, text(&run.run_id), id]
}
