//! Reads what a transaction is about to change, in one flight: makes the runs that are not there, locks all of them in
//! the order of their names so that nobody waits in a circle, and reads them and the steps that will be replaced.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tokio::try_join;
use tokio_postgres::Row;

use super::fault::Sql;
use super::ledger::{Entry, Ledger, Said};
use super::session::{Session, Values};
use super::text::{TextIn, json, text};
use crate::numbers::{day, nano_in};
use crate::tally::{Share, Tally, owned, shown, with_cost};
use crate::{Change, RunKey};

/// What is to be read of the runs that changes are about.
#[derive(Default)]
struct Wanted<'a> {
    runs: BTreeMap<&'a RunKey, First<'a>>,
}

/// The first that a transaction says about a run.
#[derive(Default)]
struct First<'a> {
    at_ms: Option<i64>,
    /// Of a run that begins with a step.
    project: &'a str,
    steps: BTreeSet<u32>,
    says_more: bool,
}

impl<'a> Wanted<'a> {
    fn of(changes: &[(usize, &'a Change)]) -> Self {
        let mut wanted = Self::default();
        for (_, change) in changes {
            match *change {
                Change::Expect { run, .. } | Change::SetVersion { run, .. } => {
                    wanted.runs.entry(run).or_default();
                }
                Change::StartRun(start) => {
                    wanted.first(&start.run, start.at_ms, "").says_more = true;
                }
                Change::PutStep(step) | Change::AmendStep(step) => {
                    let first = wanted.first(&step.run, step.at_ms, &step.project);
                    first.steps.insert(step.step_index);
                }
                Change::FinishRun { run, at_ms, .. } => {
                    wanted.first(run, *at_ms, "");
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
                | Change::PutWaiting(_)
                | Change::TakeWaiting { .. }
                | Change::ExpireWaiting { .. } => {}
            }
        }
        wanted
    }

    fn first(&mut self, run: &'a RunKey, at_ms: i64, project: &'a str) -> &mut First<'a> {
        let first = self.runs.entry(run).or_default();
        if first.at_ms.is_none() {
            (first.at_ms, first.project) = (Some(at_ms), project);
        }
        first
    }
}

/// Reads what changes are about; `opening` is sent first, in the same flight.
pub(super) async fn read<'a>(
    session: &Session,
    opening: &str,
    changes: &[(usize, &'a Change)],
) -> Sql<Ledger<'a>> {
    let wanted = Wanted::of(changes);
    if wanted.runs.is_empty() {
        session.batch(opening).await?;
        return Ok(Ledger::default());
    }
    let fetched = Arrays::of(&wanted).fetch(session, opening).await?;
    let mut entries: Vec<Entry<'a>> = fetched.heads.iter().map(entry).collect::<Sql<_>>()?;
    for row in &fetched.steps {
        if let Some(entry) = at(&mut entries, row)? {
            let step_index: i64 = row.try_get("step_index")?;
            let share = (row.try_get("at_ms")?, share(row)?);
            entry.shares.insert(u32::try_from(step_index).unwrap_or(u32::MAX), share);
        }
    }
    for row in &fetched.said {
        if let Some(entry) = at(&mut entries, row)? {
            entry.said = what_was_said(row)?;
        }
    }
    let runs = wanted.runs.into_keys().zip(entries).collect();
    Ok(Ledger { runs, conversations: BTreeMap::new() })
}

/// What is wanted as arrays, a place a run, in the order of their names.
struct Arrays<'w> {
    orgs: Vec<TextIn<'w>>,
    ids: Vec<TextIn<'w>>,
    projects: Vec<TextIn<'w>>,
    times: Vec<i64>,
    days: Vec<i64>,
    says_more: Vec<bool>,
    /// Of each step, the place of its run, counted from one.
    places: Vec<i64>,
    indices: Vec<i64>,
}

/// What was there: a row a run, those of the steps that are there, and what those runs said that say more.
struct Fetched {
    heads: Vec<Row>,
    steps: Vec<Row>,
    said: Vec<Row>,
}

impl<'w> Arrays<'w> {
    fn of(wanted: &Wanted<'w>) -> Self {
        let (mut places, mut indices) = (Vec::new(), Vec::new());
        for (place, first) in (1_i64..).zip(wanted.runs.values()) {
            places.extend(first.steps.iter().map(|_| place));
            indices.extend(first.steps.iter().map(|index| i64::from(*index)));
        }
        let firsts = || wanted.runs.values();
        let times: Vec<i64> = firsts().map(|first| first.at_ms.unwrap_or_default()).collect();
        Self {
            orgs: wanted.runs.keys().map(|run| TextIn::of(&run.org)).collect(),
            ids: wanted.runs.keys().map(|run| TextIn::of(&run.run_id)).collect(),
            projects: firsts().map(|first| TextIn::of(first.project)).collect(),
            days: times.iter().map(|at_ms| day(*at_ms)).collect(),
            times,
            says_more: firsts().map(|first| first.says_more).collect(),
            places,
            indices,
        }
    }

    async fn fetch(&self, session: &Session, opening: &str) -> Sql<Fetched> {
        let make = session.prepare(MAKE).await?;
        let heads = session.prepare(&heads_sql()).await?;
        let steps = session.prepare(&steps_sql()).await?;
        let said = session.prepare(SAID).await?;
        let Self { orgs, ids, projects, times, days, says_more, places, indices } = self;
        let to_make: Values<'_> = &[orgs, ids, projects, times, days];
        let of_runs: Values<'_> = &[orgs, ids];
        let of_steps: Values<'_> = &[orgs, ids, places, indices];
        let of_said: Values<'_> = &[orgs, ids, says_more];
        let ((), _, heads, steps, said) = try_join!(
            biased; // sent in this order
            session.batch(opening),
            session.send(&make, to_make),
            session.ask(&heads, of_runs),
            session.ask(&steps, of_steps),
            session.ask(&said, of_said),
        )?;
        Ok(Fetched { heads, steps, said })
    }
}

/// Makes what is not there and locks what is; a row that is there gets no new version by it.
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
        Tally::COLUMNS
    )
}

fn steps_sql() -> String {
    format!(
        "SELECT k.place, s.step_index, s.at_ms, {}
        FROM unnest($3::bigint[], $4::bigint[]) AS p (place, step_index)
        JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, run_id, place) ON k.place = p.place
        JOIN runs r ON r.run_id = k.run_id AND r.org = k.org
        JOIN steps s ON s.run = r.id AND s.step_index = p.step_index",
        Share::COLUMNS.split(", ").map(|column| format!("s.{}", column.trim())).collect::<Vec<_>>().join(", ")
    )
}

const SAID: &str = "SELECT k.place, r.project, r.agent_name, r.task, r.model, r.framework, r.codebase,
        r.task_profile, r.parent, r.key_name, r.metadata
    FROM unnest($1::text[], $2::text[], $3::bool[]) WITH ORDINALITY AS k (org, run_id, says_more, place)
    JOIN runs r ON r.run_id = k.run_id AND r.org = k.org WHERE k.says_more";

/// The entry that a row is about.
fn at<'e, 'a>(entries: &'e mut [Entry<'a>], row: &Row) -> Sql<Option<&'e mut Entry<'a>>> {
    let place: i64 = row.try_get("place")?;
    Ok(usize::try_from(place - 1).ok().and_then(|place| entries.get_mut(place)))
}

fn entry<'a>(row: &Row) -> Sql<Entry<'a>> {
    let version: i64 = row.try_get("version")?;
    let tally = tally(row)?;
    let is_experiment = row.try_get("is_experiment")?;
    Ok(Entry {
        id: row.try_get("id")?,
        version,
        version_before: version,
        started_ms: row.try_get("started_ms")?,
        seen_ms: row.try_get("seen_ms")?,
        is_experiment,
        was_experiment: is_experiment,
        steps_before: tally.steps,
        fired_before: tally.fired(),
        tally,
        ..Entry::default()
    })
}

fn tally(row: &Row) -> Sql<Tally> {
    Ok(Tally {
        steps: row.try_get("step_count")?,
        injected_steps: row.try_get("injected_steps")?,
        fired_steps: row.try_get("fired_steps")?,
        warn_steps: row.try_get("warn_steps")?,
        danger_steps: row.try_get("danger_steps")?,
        score_nano: row.try_get("score_nano")?,
        score_peak: row.try_get("score_peak")?,
        spent: with_cost(tokens(row)?, row.try_get("cost_nano")?),
        monitors: json(row, "monitors")?,
        models: json(row, "models")?,
    })
}

fn share(row: &Row) -> Sql<Share<'static>> {
    Ok(Share {
        score: row.try_get("total_score")?,
        spent: with_cost(tokens(row)?, nano_in(row.try_get("cost_usd")?)),
        injected: row.try_get("injected")?,
        model: Cow::Owned(text(row, "model")?),
        scores: Cow::Owned(json(row, "scores")?),
        fired: owned(json(row, "fired")?),
        patterns: shown(&json::<Vec<String>>(row, "injections")?),
    })
}

/// As they are stored: what is added and taken away are the same numbers.
fn tokens(row: &Row) -> Sql<[i64; 5]> {
    Ok([
        row.try_get("tokens_total")?,
        row.try_get("tokens_input")?,
        row.try_get("tokens_output")?,
        row.try_get("cache_read")?,
        row.try_get("cache_write")?,
    ])
}

fn what_was_said(row: &Row) -> Sql<Said> {
    Ok(Said {
        is_fresh: false,
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
