//! Batched writes of runs and steps: one statement per table with an array per column.

use tokio_postgres::Statement;

use super::error::Sql;
use super::session::Session;
use super::text::EncodedText;
use super::unit_of_work::Entry;
use crate::numeric::{amount, count_to_db, day};
use crate::run_metadata::{class_number, search_text};
use crate::{OutcomeClass, RunKey, StepRow};

/// Changed runs by key.
type Runs<'a, 'b> = [(&'b RunKey, &'b Entry<'a>)];

/// Prepared statements, so that they can be pipelined.
pub(super) struct Statements {
    steps: Statement,
    sums: Statement,
    descriptions: Statement,
    search_texts: Statement,
    ends: Statement,
    fired: Statement,
    no_longer_fired: Statement,
    shown: Statement,
    no_longer_shown: Statement,
}

/// Columns of a step with their types, in order of the parameters.
const STEP: [(&str, &str); 31] = [
    ("run", "bigint"),
    ("step_index", "bigint"),
    ("at_ms", "bigint"),
    ("total_score", "float8"),
    ("cost_usd", "float8"),
    ("tokens_total", "bigint"),
    ("tokens_input", "bigint"),
    ("tokens_output", "bigint"),
    ("cache_read", "bigint"),
    ("cache_write", "bigint"),
    ("injected", "bool"),
    ("is_error", "bool"),
    ("input_is_structured", "bool"),
    ("model", "text"),
    ("scores", "text"),
    ("fired", "text"),
    ("failure_type", "text"),
    ("action", "text"),
    ("monitors_fired", "text"),
    ("injection_sources", "text"),
    ("injections", "text"),
    ("intervention_texts", "text"),
    ("evidence", "text"),
    ("metadata", "text"),
    ("replay", "text"),
    ("project", "text"),
    ("user_input", "text"),
    ("thought", "text"),
    ("action_input", "text"),
    ("observation", "text"),
    ("state", "text"),
];

/// Columns of a run that change with every step.
const SUMS: [(&str, &str); 19] = [
    ("id", "bigint"),
    ("version", "bigint"),
    ("seen_ms", "bigint"),
    ("seen_day", "bigint"),
    ("step_count", "bigint"),
    ("injected_steps", "bigint"),
    ("fired_steps", "bigint"),
    ("warn_steps", "bigint"),
    ("danger_steps", "bigint"),
    ("score_nano", "bigint"),
    ("score_peak", "float8"),
    ("tokens_total", "bigint"),
    ("tokens_input", "bigint"),
    ("tokens_output", "bigint"),
    ("cache_read", "bigint"),
    ("cache_write", "bigint"),
    ("cost_nano", "bigint"),
    ("monitors", "text"),
    ("models", "text"),
];

/// Columns of a run's description.
const DESCRIPTION: [(&str, &str); 13] = [
    ("id", "bigint"),
    ("project", "text"),
    ("agent_name", "text"),
    ("task", "text"),
    ("model", "text"),
    ("framework", "text"),
    ("codebase", "text"),
    ("task_profile", "text"),
    ("parent", "text"),
    ("key_name", "text"),
    ("metadata", "text"),
    ("experiment_id", "text"),
    ("arm", "text"),
];

/// Returns `unnest($1::bigint[], …) AS u (run, …)`.
fn arrays(columns: &[(&str, &str)]) -> String {
    let given: Vec<String> =
        (1..).zip(columns).map(|(at, (_, ty))| format!("${at}::{ty}[]")).collect();
    format!("unnest({}) AS u ({})", given.join(", "), names(columns))
}

fn names(columns: &[(&str, &str)]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Returns `a = from.a, …`.
fn sets(columns: &[(&str, &str)], from: &str) -> String {
    let set = |(name, _): &(&str, &str)| format!("{name} = {from}.{name}");
    columns.iter().map(set).collect::<Vec<_>>().join(", ")
}

fn update_runs(columns: &[(&str, &str)]) -> String {
    format!(
        "UPDATE runs r SET {} FROM {} WHERE r.id = u.id",
        sets(&columns[1..], "u"),
        arrays(columns)
    )
}

impl Statements {
    pub(super) async fn prepare(session: &Session) -> Sql<Self> {
        let put_steps = format!(
            "INSERT INTO steps ({}) SELECT * FROM {} ON CONFLICT (run, step_index) DO UPDATE SET {}",
            names(&STEP),
            arrays(&STEP),
            sets(&STEP[2..], "excluded")
        );
        let put_words =
            "INSERT INTO run_search (run, text) SELECT * FROM unnest($1::bigint[], $2::text[])
            ON CONFLICT (run) DO UPDATE SET text = excluded.text";
        let end = "UPDATE runs r SET outcome = u.outcome, outcome_class = u.class,
                finished_ms = coalesce(r.finished_ms, u.at_ms)
            FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS u (id, outcome, class, at_ms)
            WHERE r.id = u.id";
        let fire = "INSERT INTO fired_runs (org, monitor, started_ms, run_id, run)
            SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[])
            ON CONFLICT DO NOTHING";
        let forget =
            "DELETE FROM fired_runs f USING unnest($1::bigint[], $2::text[]) AS u (run, monitor)
            WHERE f.run = u.run AND f.monitor = u.monitor";
        let show = "INSERT INTO pattern_runs AS p (org, pattern, started_ms, run_id, run, steps)
            SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[])
            ON CONFLICT (org, pattern, started_ms, run_id) DO UPDATE SET steps = p.steps + excluded.steps";
        let hide =
            "DELETE FROM pattern_runs p USING unnest($1::bigint[], $2::text[]) AS u (run, pattern)
            WHERE p.run = u.run AND p.pattern = u.pattern AND p.steps <= 0";
        Ok(Self {
            steps: session.prepare(&put_steps).await?,
            sums: session.prepare(&update_runs(&SUMS)).await?,
            descriptions: session.prepare(&update_runs(&DESCRIPTION)).await?,
            search_texts: session.prepare(put_words).await?,
            ends: session.prepare(end).await?,
            fired: session.prepare(fire).await?,
            no_longer_fired: session.prepare(forget).await?,
            shown: session.prepare(show).await?,
            no_longer_shown: session.prepare(hide).await?,
        })
    }

    pub(super) async fn steps(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let steps: Vec<(i64, &StepRow)> = runs
            .iter()
            .flat_map(|(_, entry)| entry.steps.values().map(|step| (entry.id, *step)))
            .collect();
        if steps.is_empty() {
            return Ok(0);
        }
        let numbers = |part: fn(&StepRow) -> i64| {
            steps.iter().map(|(_, step)| part(step)).collect::<Vec<i64>>()
        };
        let reals = |part: fn(&StepRow) -> f64| {
            steps.iter().map(|(_, step)| amount(part(step))).collect::<Vec<f64>>()
        };
        let flags = |part: fn(&StepRow) -> bool| {
            steps.iter().map(|(_, step)| part(step)).collect::<Vec<bool>>()
        };
        let lists: Vec<Lists> =
            steps.iter().map(|(_, step)| Lists::of(step)).collect::<Sql<_>>()?;
        let runs: Vec<i64> = steps.iter().map(|(run, _)| *run).collect();
        session
            .send(
                &self.steps,
                &[
                    &runs,
                    &numbers(|step| i64::from(step.step_index)),
                    &numbers(|step| step.at_ms),
                    &reals(|step| step.total_score),
                    &reals(|step| step.cost_usd),
                    &numbers(|step| count_to_db(step.tokens.total)),
                    &numbers(|step| count_to_db(step.tokens.input)),
                    &numbers(|step| count_to_db(step.tokens.output)),
                    &numbers(|step| count_to_db(step.tokens.cache_read)),
                    &numbers(|step| count_to_db(step.tokens.cache_write)),
                    &flags(StepRow::is_injected),
                    &flags(|step| step.is_error),
                    &flags(|step| step.input_is_structured),
                    &texts(&steps, |step| &step.model),
                    &column(&lists, |lists| &lists.scores),
                    &column(&lists, |lists| &lists.fired),
                    &maybe(&steps, |step| step.failure_type.as_deref()),
                    &maybe(&steps, |step| step.action.as_deref()),
                    &column(&lists, |lists| &lists.monitors_fired),
                    &column(&lists, |lists| &lists.injection_sources),
                    &column(&lists, |lists| &lists.injections),
                    &column(&lists, |lists| &lists.intervention_texts),
                    &column(&lists, |lists| &lists.evidence),
                    &column(&lists, |lists| &lists.metadata),
                    &maybe(&steps, |step| step.replay.as_deref()),
                    &texts(&steps, |step| &step.project),
                    &texts(&steps, |step| &step.user_input),
                    &texts(&steps, |step| &step.thought),
                    &maybe(&steps, |step| step.action_input.as_deref()),
                    &maybe(&steps, |step| step.observation.as_deref()),
                    &texts(&steps, |step| &step.state),
                ],
            )
            .await
    }

    pub(super) async fn sums(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        if runs.is_empty() {
            return Ok(0);
        }
        let numbers = |part: fn(&Entry<'_>) -> i64| {
            runs.iter().map(|(_, entry)| part(entry)).collect::<Vec<i64>>()
        };
        let tokens_and_cost = |at: usize| {
            runs.iter().map(|(_, entry)| entry.totals.tokens_and_cost[at]).collect::<Vec<i64>>()
        };
        let peaks: Vec<f64> = runs.iter().map(|(_, entry)| entry.totals.score_peak).collect();
        let monitors: Vec<_> = runs
            .iter()
            .map(|(_, entry)| EncodedText::json(&entry.totals.monitors))
            .collect::<Sql<_>>()?;
        let models: Vec<_> = runs
            .iter()
            .map(|(_, entry)| EncodedText::json(&entry.totals.models))
            .collect::<Sql<_>>()?;
        session
            .send(
                &self.sums,
                &[
                    &numbers(|entry| entry.id),
                    &numbers(|entry| entry.version),
                    &numbers(|entry| entry.seen_ms),
                    &numbers(|entry| day(entry.seen_ms)),
                    &numbers(|entry| entry.totals.steps),
                    &numbers(|entry| entry.totals.injected_steps),
                    &numbers(|entry| entry.totals.fired_steps),
                    &numbers(|entry| entry.totals.warn_steps),
                    &numbers(|entry| entry.totals.danger_steps),
                    &numbers(|entry| entry.totals.score_nano),
                    &peaks,
                    &tokens_and_cost(0),
                    &tokens_and_cost(1),
                    &tokens_and_cost(2),
                    &tokens_and_cost(3),
                    &tokens_and_cost(4),
                    &tokens_and_cost(5),
                    &monitors,
                    &models,
                ],
            )
            .await
    }

    pub(super) async fn descriptions(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let more: Vec<&Entry<'_>> = runs
            .iter()
            .map(|(_, entry)| *entry)
            .filter(|entry| entry.description.is_changed)
            .collect();
        if more.is_empty() {
            return Ok(0);
        }
        let texts = |part: for<'e> fn(&'e Entry<'_>) -> &'e String| {
            more.iter().map(|entry| EncodedText::of(part(entry))).collect::<Vec<_>>()
        };
        let ids: Vec<i64> = more.iter().map(|entry| entry.id).collect();
        let metadata: Vec<_> = more
            .iter()
            .map(|entry| EncodedText::json(&entry.description.metadata))
            .collect::<Sql<_>>()?;
        let experiments: Vec<String> =
            more.iter().map(|entry| entry.description.experiment_id()).collect();
        let arms: Vec<String> = more.iter().map(|entry| entry.description.arm()).collect();
        let experiments: Vec<EncodedText<'_>> =
            experiments.iter().map(|id| EncodedText::of(id)).collect();
        let arms: Vec<EncodedText<'_>> = arms.iter().map(|arm| EncodedText::of(arm)).collect();
        session
            .send(
                &self.descriptions,
                &[
                    &ids,
                    &texts(|entry| &entry.description.project),
                    &texts(|entry| &entry.description.agent_name),
                    &texts(|entry| &entry.description.task),
                    &texts(|entry| &entry.description.model),
                    &texts(|entry| &entry.description.framework),
                    &texts(|entry| &entry.description.codebase),
                    &texts(|entry| &entry.description.task_profile),
                    &texts(|entry| &entry.description.parent),
                    &texts(|entry| &entry.description.key_name),
                    &metadata,
                    &experiments,
                    &arms,
                ],
            )
            .await
    }

    /// Writes the search text of new runs and of those with a changed description.
    pub(super) async fn search_texts(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let (ids, words): (Vec<i64>, Vec<String>) = runs
            .iter()
            .filter(|(_, entry)| entry.is_new() || entry.description.is_changed)
            .map(|(run, entry)| {
                let description = &entry.description;
                (entry.id, search_text(&run.run_id, &description.agent_name, &description.task))
            })
            .unzip();
        if ids.is_empty() {
            return Ok(0);
        }
        let words: Vec<EncodedText<'_>> =
            words.iter().map(|words| EncodedText::of(words)).collect();
        session.send(&self.search_texts, &[&ids, &words]).await
    }

    pub(super) async fn ends(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let ended: Vec<(i64, &str, i64)> = runs
            .iter()
            .filter_map(|(_, entry)| entry.end.map(|(outcome, at_ms)| (entry.id, outcome, at_ms)))
            .collect();
        if ended.is_empty() {
            return Ok(0);
        }
        let ids: Vec<i64> = ended.iter().map(|(id, ..)| *id).collect();
        let outcomes: Vec<EncodedText<'_>> =
            ended.iter().map(|(_, outcome, _)| EncodedText::of(outcome)).collect();
        let classes: Vec<i64> = ended
            .iter()
            .map(|(_, outcome, _)| class_number(OutcomeClass::of(Some(outcome))))
            .collect();
        let times: Vec<i64> = ended.iter().map(|(.., at_ms)| *at_ms).collect();
        session.send(&self.ends, &[&ids, &outcomes, &classes, &times]).await
    }

    /// Inserts the monitors that fired in a run for the first time.
    pub(super) async fn fired(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let first: Vec<(&RunKey, &Entry<'_>, String)> = runs
            .iter()
            .flat_map(|(run, entry)| {
                let fired = entry.totals.fired();
                let new: Vec<String> = fired.difference(&entry.fired_before).cloned().collect();
                new.into_iter().map(|monitor| (*run, *entry, monitor))
            })
            .collect();
        if first.is_empty() {
            return Ok(0);
        }
        let orgs: Vec<EncodedText<'_>> =
            first.iter().map(|(run, ..)| EncodedText::of(&run.org)).collect();
        let monitors: Vec<EncodedText<'_>> =
            first.iter().map(|(.., monitor)| EncodedText::of(monitor)).collect();
        let times: Vec<i64> = first.iter().map(|(_, entry, _)| entry.started_ms).collect();
        let names: Vec<EncodedText<'_>> =
            first.iter().map(|(run, ..)| EncodedText::of(&run.run_id)).collect();
        let ids: Vec<i64> = first.iter().map(|(_, entry, _)| entry.id).collect();
        session.send(&self.fired, &[&orgs, &monitors, &times, &names, &ids]).await
    }

    /// Deletes the monitors that no longer fired on any step of a run.
    pub(super) async fn no_longer_fired(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let (ids, monitors): (Vec<i64>, Vec<String>) = runs
            .iter()
            .flat_map(|(_, entry)| {
                let fired = entry.totals.fired();
                let gone: Vec<String> = entry.fired_before.difference(&fired).cloned().collect();
                gone.into_iter().map(|monitor| (entry.id, monitor))
            })
            .unzip();
        if ids.is_empty() {
            return Ok(0);
        }
        let monitors: Vec<EncodedText<'_>> =
            monitors.iter().map(|name| EncodedText::of(name)).collect();
        session.send(&self.no_longer_fired, &[&ids, &monitors]).await
    }

    /// Updates the number of steps on which patterns are shown.
    pub(super) async fn shown(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let moved: Vec<(&RunKey, &Entry<'_>, &String, i64)> = runs
            .iter()
            .flat_map(|(run, entry)| {
                entry.shown.iter().map(|(pattern, steps)| (*run, *entry, pattern, *steps))
            })
            .filter(|(.., steps)| *steps != 0)
            .collect();
        if moved.is_empty() {
            return Ok(0);
        }
        let orgs: Vec<EncodedText<'_>> =
            moved.iter().map(|(run, ..)| EncodedText::of(&run.org)).collect();
        let patterns: Vec<EncodedText<'_>> =
            moved.iter().map(|(_, _, pattern, _)| EncodedText::of(pattern)).collect();
        let times: Vec<i64> = moved.iter().map(|(_, entry, ..)| entry.started_ms).collect();
        let names: Vec<EncodedText<'_>> =
            moved.iter().map(|(run, ..)| EncodedText::of(&run.run_id)).collect();
        let ids: Vec<i64> = moved.iter().map(|(_, entry, ..)| entry.id).collect();
        let steps: Vec<i64> = moved.iter().map(|(.., steps)| *steps).collect();
        session.send(&self.shown, &[&orgs, &patterns, &times, &names, &ids, &steps]).await
    }

    /// Deletes the patterns that are no longer shown on any step of a run.
    pub(super) async fn no_longer_shown(&self, session: &Session, runs: &Runs<'_, '_>) -> Sql<u64> {
        let (ids, patterns): (Vec<i64>, Vec<EncodedText<'_>>) = runs
            .iter()
            .flat_map(|(_, entry)| entry.shown.iter().map(|shown| (entry.id, shown)))
            .filter(|(_, (_, steps))| **steps < 0)
            .map(|(id, (pattern, _))| (id, EncodedText::of(pattern)))
            .unzip();
        if ids.is_empty() {
            return Ok(0);
        }
        session.send(&self.no_longer_shown, &[&ids, &patterns]).await
    }
}

/// JSON columns of a step.
struct Lists {
    scores: Json,
    fired: Json,
    monitors_fired: Json,
    injection_sources: Json,
    injections: Json,
    intervention_texts: Json,
    evidence: Json,
    metadata: Json,
}

type Json = Option<EncodedText<'static>>;

impl Lists {
    fn of(step: &StepRow) -> Sql<Self> {
        let mut scores = step.scores.clone();
        scores.retain(|_, score| score.is_finite());
        Ok(Self {
            scores: EncodedText::json(&scores)?,
            fired: EncodedText::json(&step.fired)?,
            monitors_fired: EncodedText::json(&step.monitors_fired)?,
            injection_sources: EncodedText::json(&step.injection_sources)?,
            injections: EncodedText::json(&step.injections)?,
            intervention_texts: EncodedText::json(&step.intervention_texts)?,
            evidence: EncodedText::json(&step.evidence)?,
            metadata: EncodedText::json(&step.metadata)?,
        })
    }
}

fn column(lists: &[Lists], part: for<'l> fn(&'l Lists) -> &'l Json) -> Vec<&Json> {
    lists.iter().map(part).collect()
}

fn texts<'a>(steps: &[(i64, &'a StepRow)], part: fn(&StepRow) -> &String) -> Vec<EncodedText<'a>> {
    steps.iter().map(|(_, step)| EncodedText::of(part(step))).collect()
}

fn maybe<'a>(
    steps: &[(i64, &'a StepRow)],
    part: fn(&StepRow) -> Option<&str>,
) -> Vec<Option<EncodedText<'a>>> {
    steps.iter().map(|(_, step)| EncodedText::maybe(part(step))).collect()
}
