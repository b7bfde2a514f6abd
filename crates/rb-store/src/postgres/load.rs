//! Loads the runs of a transaction with pipelined statements: creates missing runs, locks all runs in order of their
//! keys to prevent deadlocks, and reads them and the steps that will be replaced.

use std::collections::{BTreeMap, BTreeSet};

use tokio::try_join;
use tokio_postgres::Row;

use super::error::Sql;
use super::session::{Session, Values};
use super::unit_of_work::{Entry, UnitOfWork};
use super::values::{RowColumns, text};
use crate::numeric::day;
use crate::run_metadata::RunDescription;
use crate::run_totals::{RunTotals, StepContribution};
use crate::sql::{Row as _, Value, list, next};
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
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others read no run")]
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
                _ => {}
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
        let columns = &mut RowColumns::of(row);
        if let Some(entry) = entries.get_mut(next::<u32>(columns)? as usize) {
            let step_index = next(columns)?;
            let contribution = (next(columns)?, StepContribution::read(columns)?);
            entry.contributions.insert(step_index, contribution);
        }
    }
    for row in &fetched.descriptions {
        let columns = &mut RowColumns::of(row);
        if let Some(entry) = entries.get_mut(next::<u32>(columns)? as usize) {
            entry.description = RunDescription::read(columns)?;
        }
    }
    let runs = read_set.runs.into_keys().zip(entries).collect();
    Ok(UnitOfWork { runs, conversations: BTreeMap::new() })
}

/// Parameters as arrays with an element per run, in order of their keys.
struct Arrays<'w> {
    orgs: Vec<Value<'w>>,
    ids: Vec<Value<'w>>,
    projects: Vec<Value<'w>>,
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
            orgs: read_set.runs.keys().map(|run| text(&run.org)).collect(),
            ids: read_set.runs.keys().map(|run| text(&run.run_id)).collect(),
            projects: firsts().map(|first| text(first.project)).collect(),
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
        let descriptions = session.prepare(&descriptions_sql()).await?;
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
        list::<RunTotals>("r.")
    )
}

fn steps_sql() -> String {
    format!(
        "SELECT k.place - 1, s.step_index, s.at_ms, {}
        FROM unnest($3::bigint[], $4::bigint[]) AS p (place, step_index)
        JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, run_id, place) ON k.place = p.place
        JOIN runs r ON r.run_id = k.run_id AND r.org = k.org
        JOIN steps s ON s.run = r.id AND s.step_index = p.step_index",
        list::<StepContribution<'static>>("s.")
    )
}

fn descriptions_sql() -> String {
    format!(
        "SELECT k.place - 1, {}
        FROM unnest($1::text[], $2::text[], $3::bool[]) WITH ORDINALITY AS k (org, run_id, has_start, place)
        JOIN runs r ON r.run_id = k.run_id AND r.org = k.org WHERE k.has_start",
        list::<RunDescription>("r.")
    )
}

fn entry<'a>(row: &Row) -> Sql<Entry<'a>> {
    let columns = &mut RowColumns::of(row);
    let (id, version, started_ms, seen_ms, is_experiment) =
        (next(columns)?, next(columns)?, next(columns)?, next(columns)?, next(columns)?);
    let totals = RunTotals::read(columns)?;
    Ok(Entry {
        id,
        version,
        version_before: version,
        started_ms,
        seen_ms,
        is_experiment,
        was_experiment: is_experiment,
        steps_before: totals.steps,
        fired_before: totals.fired(),
        totals,
        ..Entry::default()
    })
}
