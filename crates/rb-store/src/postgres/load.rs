//! Loads the runs of a transaction with pipelined statements: creates missing runs, locks all runs in order of their
//! keys to prevent deadlocks, and reads them and the steps that will be replaced.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tokio::try_join;
use tokio_postgres::Row;

use super::error::Sql;
use super::session::{Session, Values};
use super::text::{EncodedText, json, text};
use super::unit_of_work::{Entry, RunDescription, UnitOfWork};
use crate::numeric::{day, to_nano};
use crate::run_totals::{RunTotals, StepContribution, owned, shown, with_cost};
use crate::{Change, RunKey};

/// Runs and steps that a list of changes needs.
#[derive(Default)]
struct ReadSet<'a> {
    runs: BTreeMap<&'a RunKey, FirstMention<'a>>,
}

/// First mention of a run in a transaction.
#[derive(Default)]
struct FirstMention<'a> {
    at_ms: Option<i64>,
    /// Project of a run that is created by a step.
    project: &'a str,
    steps: BTreeSet<u32>,
    has_start: bool,
}

impl<'a> ReadSet<'a> {
    fn of(changes: &[(usize, &'a Change)]) -> Self {
        let mut read_set = Self::default();
        for (_, change) in changes {
            match *change {
                Change::ExpectVersion { run, .. } | Change::SetVersion { run, .. } => {
                    read_set.runs.entry(run).or_default();
                }
                Change::StartRun(start) => {
                    read_set.first(&start.run, start.at_ms, "").has_start = true;
                }
                Change::PutStep(step) | Change::AmendStep(step) => {
                    let first = read_set.first(&step.run, step.at_ms, &step.project);
                    first.steps.insert(step.step_index);
                }
                Change::FinishRun { run, at_ms, .. } => {
                    read_set.first(run, *at_ms, "");
                }
                Change::DeleteRun(_)
                | Change::SetUsage { .. }
                | Change::ExpireRuns { .. }
                | Change::PutPattern(_)
                | Change::DeletePattern { .. }
                | Change::UsePatterns { .. }
                | Change::PutFinding(_)
                | Change::DeleteFinding { .. }
                | Change::InvalidateFindings { .. }
                | Change::ClearFindings { .. }
                | Change::PutProfile(_)
                | Change::DeleteProfile { .. }
                | Change::PutKey(_)
                | Change::RevokeKey { .. }
                | Change::PutSetting { .. }
                | Change::PutConversation(_)
                | Change::PutOperatorMessage(_)
                | Change::TakeOperatorMessage { .. }
                | Change::ExpireOperatorMessages { .. } => {}
            }
        }
        read_set
    }

    fn first(&mut self, run: &'a RunKey, at_ms: i64, project: &'a str) -> &mut FirstMention<'a> {
        let first = self.runs.entry(run).or_default();
        if first.at_ms.is_none() {
            (first.at_ms, first.project) = (Some(at_ms), project);
        }
        first
    }
}

/// Sends `opening` and loads the runs of the changes.
pub(super) async fn read<'a>(
    session: &Session,
    opening: &str,
    changes: &[(usize, &'a Change)],
) -> Sql<UnitOfWork<'a>> {
    let read_set = ReadSet::of(changes);
    if read_set.runs.is_empty() {
        session.batch(opening).await?;
        return Ok(UnitOfWork::default());
    }
    let fetched = Arrays::of(&read_set).fetch(session, opening).await?;
    let mut entries: Vec<Entry<'a>> = fetched.heads.iter().map(entry).collect::<Sql<_>>()?;
    for row in &fetched.steps {
        if let Some(entry) = at(&mut entries, row)? {
            let step_index: i64 = row.try_get("step_index")?;
            let contribution = (row.try_get("at_ms")?, contribution(row)?);
            entry.contributions.insert(u32::try_from(step_index).unwrap_or(u32::MAX), contribution);
        }
    }
    for row in &fetched.descriptions {
        if let Some(entry) = at(&mut entries, row)? {
            entry.description = description(row)?;
        }
    }
    let runs = read_set.runs.into_keys().zip(entries).collect();
    Ok(UnitOfWork { runs, conversations: BTreeMap::new() })
}

/// Parameters as arrays with an element per run, in order of their keys.
struct Arrays<'w> {
    orgs: Vec<EncodedText<'w>>,
    ids: Vec<EncodedText<'w>>,
    projects: Vec<EncodedText<'w>>,
    times: Vec<i64>,
    days: Vec<i64>,
    has_start: Vec<bool>,
    /// For each step, the 1-based position of its run.
    places: Vec<i64>,
    indices: Vec<i64>,
}

/// Rows of all runs, of existing steps, and of the descriptions that are updated.
struct Fetched {
    heads: Vec<Row>,
    steps: Vec<Row>,
    descriptions: Vec<Row>,
}

impl<'w> Arrays<'w> {
    fn of(read_set: &ReadSet<'w>) -> Self {
        let (mut places, mut indices) = (Vec::new(), Vec::new());
        for (place, first) in (1_i64..).zip(read_set.runs.values()) {
            places.extend(first.steps.iter().map(|_| place));
            indices.extend(first.steps.iter().map(|index| i64::from(*index)));
        }
        let firsts = || read_set.runs.values();
        let times: Vec<i64> = firsts().map(|first| first.at_ms.unwrap_or_default()).collect();
        Self {
            orgs: read_set.runs.keys().map(|run| EncodedText::of(&run.org)).collect(),
            ids: read_set.runs.keys().map(|run| EncodedText::of(&run.run_id)).collect(),
            projects: firsts().map(|first| EncodedText::of(first.project)).collect(),
            days: times.iter().map(|at_ms| day(*at_ms)).collect(),
            times,
            has_start: firsts().map(|first| first.has_start).collect(),
            places,
            indices,
        }
    }

    async fn fetch(&self, session: &Session, opening: &str) -> Sql<Fetched> {
        let make = session.prepare(MAKE).await?;
        let heads = session.prepare(&heads_sql()).await?;
        let steps = session.prepare(&steps_sql()).await?;
        let descriptions = session.prepare(DESCRIPTION).await?;
        let Self { orgs, ids, projects, times, days, has_start, places, indices } = self;
        let to_make: Values<'_> = &[orgs, ids, projects, times, days];
        let of_runs: Values<'_> = &[orgs, ids];
        let of_steps: Values<'_> = &[orgs, ids, places, indices];
        let of_descriptions: Values<'_> = &[orgs, ids, has_start];
        let ((), _, heads, steps, descriptions) = try_join!(
            biased; // sent in this order
            session.batch(opening),
            session.send(&make, to_make),
            session.ask(&heads, of_runs),
            session.ask(&steps, of_steps),
            session.ask(&descriptions, of_descriptions),
        )?;
        Ok(Fetched { heads, steps, descriptions })
    }
}

/// Creates missing runs and locks existing ones without writing a new row version.
const MAKE: &str = "INSERT INTO runs (org, run_id, project, started_ms, seen_ms, seen_day)
    SELECT org, run_id, project, at_ms, at_ms, day
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
        AS k (org, run_id, project, at_ms, day)
    ON CONFLICT (run_id, org) DO UPDATE SET version = runs.version WHERE false";

fn heads_sql() -> String {
    format!(
        "SELECT r.id, r.version, r.started_ms, r.seen_ms, r.experiment_id <> '' AS is_experiment, {}
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, run_id, place)
        JOIN runs r ON r.run_id = k.run_id AND r.org = k.org ORDER BY k.place",
        RunTotals::COLUMNS
    )
}

fn steps_sql() -> String {
    format!(
        "SELECT k.place, s.step_index, s.at_ms, {}
        FROM unnest($3::bigint[], $4::bigint[]) AS p (place, step_index)
        JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, run_id, place) ON k.place = p.place
        JOIN runs r ON r.run_id = k.run_id AND r.org = k.org
        JOIN steps s ON s.run = r.id AND s.step_index = p.step_index",
        StepContribution::COLUMNS.split(", ").map(|column| format!("s.{}", column.trim())).collect::<Vec<_>>().join(", ")
    )
}

const DESCRIPTION: &str = "SELECT k.place, r.project, r.agent_name, r.task, r.model, r.framework, r.codebase,
        r.task_profile, r.parent, r.key_name, r.metadata
    FROM unnest($1::text[], $2::text[], $3::bool[]) WITH ORDINALITY AS k (org, run_id, has_start, place)
    JOIN runs r ON r.run_id = k.run_id AND r.org = k.org WHERE k.has_start";

/// Returns the entry that a row belongs to.
fn at<'e, 'a>(entries: &'e mut [Entry<'a>], row: &Row) -> Sql<Option<&'e mut Entry<'a>>> {
    let place: i64 = row.try_get("place")?;
    Ok(usize::try_from(place - 1).ok().and_then(|place| entries.get_mut(place)))
}

fn entry<'a>(row: &Row) -> Sql<Entry<'a>> {
    let version: i64 = row.try_get("version")?;
    let totals = totals(row)?;
    let is_experiment = row.try_get("is_experiment")?;
    Ok(Entry {
        id: row.try_get("id")?,
        version,
        version_before: version,
        started_ms: row.try_get("started_ms")?,
        seen_ms: row.try_get("seen_ms")?,
        is_experiment,
        was_experiment: is_experiment,
        steps_before: totals.steps,
        fired_before: totals.fired(),
        totals,
        ..Entry::default()
    })
}

fn totals(row: &Row) -> Sql<RunTotals> {
    Ok(RunTotals {
        steps: row.try_get("step_count")?,
        injected_steps: row.try_get("injected_steps")?,
        fired_steps: row.try_get("fired_steps")?,
        warn_steps: row.try_get("warn_steps")?,
        danger_steps: row.try_get("danger_steps")?,
        score_nano: row.try_get("score_nano")?,
        score_peak: row.try_get("score_peak")?,
        tokens_and_cost: with_cost(tokens(row)?, row.try_get("cost_nano")?),
        monitors: json(row, "monitors")?,
        models: json(row, "models")?,
    })
}

fn contribution(row: &Row) -> Sql<StepContribution<'static>> {
    Ok(StepContribution {
        score: row.try_get("total_score")?,
        tokens_and_cost: with_cost(tokens(row)?, to_nano(row.try_get("cost_usd")?)),
        injected: row.try_get("injected")?,
        model: Cow::Owned(text(row, "model")?),
        scores: Cow::Owned(json(row, "scores")?),
        fired: owned(json(row, "fired")?),
        patterns: shown(&json::<Vec<String>>(row, "injections")?),
    })
}

/// Reads the stored token counts.
fn tokens(row: &Row) -> Sql<[i64; 5]> {
    Ok([
        row.try_get("tokens_total")?,
        row.try_get("tokens_input")?,
        row.try_get("tokens_output")?,
        row.try_get("cache_read")?,
        row.try_get("cache_write")?,
    ])
}

fn description(row: &Row) -> Sql<RunDescription> {
    Ok(RunDescription {
        is_changed: false,
        project: text(row, "project")?,
        agent_name: text(row, "agent_name")?,
        task: text(row, "task")?,
        model: text(row, "model")?,
        framework: text(row, "framework")?,
        codebase: text(row, "codebase")?,
        task_profile: text(row, "task_profile")?,
        parent: text(row, "parent")?,
        key_name: text(row, "key_name")?,
        metadata: json(row, "metadata")?,
    })
}
