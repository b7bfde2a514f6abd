//! Lists of runs, newest first.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params_from_iter};

use super::columns::from_json;
use super::scope::Conditions;
use super::{select, steps};
use crate::numeric::{count_from_db, from_nano};
use crate::run_metadata::class_number;
use crate::{RunFilter, RunKey, RunRow, Scope};

pub(super) fn run(connection: &Connection, scope: &Scope, run_id: &str) -> Result<Option<RunRow>> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add("r.run_id = ?", [run_id.to_owned().into()]);
    let sql = format!(
        "SELECT r.* FROM runs r {} ORDER BY r.started_ms DESC, r.org DESC LIMIT 1",
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row(params_from_iter(conditions.values), row_of).optional()
}

pub(super) fn runs(
    connection: &Connection,
    scope: &Scope,
    filter: &RunFilter,
) -> Result<Vec<RunRow>> {
    // With a monitor or pattern filter, its own table of runs is scanned, which has the same order.
    let (from, lead) = match (&filter.fired, &filter.pattern) {
        (Some(_), _) => ("fired_runs f JOIN runs r ON r.id = f.run", "f"),
        (None, Some(_)) => ("pattern_runs p JOIN runs r ON r.id = p.run", "p"),
        (None, None) => ("runs r", "r"),
    };
    let mut conditions = conditions(&with_only_org(connection, scope)?, filter, lead);
    let sql = format!(
        "SELECT r.* FROM {from} {}
         ORDER BY {lead}.started_ms DESC, {lead}.org DESC, {lead}.run_id DESC LIMIT ? OFFSET ?",
        conditions.sql()
    );
    conditions.values.extend([filter.count_max.into(), filter.offset.into()]);
    select(connection, &sql, params_from_iter(conditions.values), row_of)
}

/// Replaces an unlimited scope by the only organisation, if there is just one, so that its indexes are used.
fn with_only_org(connection: &Connection, scope: &Scope) -> Result<Scope> {
    if scope.org.is_some() {
        return Ok(scope.clone());
    }
    let sql = "SELECT (SELECT min(org) FROM runs), (SELECT max(org) FROM runs)";
    let (first, last): (Option<String>, Option<String>) =
        connection.prepare_cached(sql)?.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Scope { org: first.filter(|first| last.as_ref() == Some(first)), ..scope.clone() })
}

/// Lists the organisations that have any rows.
pub(super) fn orgs(connection: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT org FROM runs UNION SELECT org FROM usage UNION SELECT org FROM findings
        UNION SELECT org FROM keys ORDER BY org";
    select(connection, sql, (), |row| row.get(0))
}

fn conditions(scope: &Scope, filter: &RunFilter, lead: &str) -> Conditions {
    let mut conditions = Conditions::of(scope, "r");
    if let Some(monitor) = &filter.fired {
        conditions.add("f.monitor = ?", [monitor.clone().into()]);
        if let Some(org) = &scope.org {
            conditions.add("f.org = ?", [org.clone().into()]);
        }
    }
    if let Some(pattern) = &filter.pattern {
        if lead == "p" {
            conditions.add("p.pattern = ?", [pattern.clone().into()]);
            if let Some(org) = &scope.org {
                conditions.add("p.org = ?", [org.clone().into()]);
            }
        } else {
            let shown =
                "EXISTS (SELECT 1 FROM pattern_runs p WHERE p.run = r.id AND p.pattern = ?)";
            conditions.add(shown, [pattern.clone().into()]);
        }
    }
    if let Some(key_name) = &filter.key_name {
        // The second condition is required for the partial index.
        conditions.add("r.key_name = ?", [key_name.clone().into()]);
        conditions.add("r.key_name <> ''", []);
    }
    if let Some(agent_name) = &filter.agent_name {
        conditions.add("r.agent_name = ?", [agent_name.clone().into()]);
    }
    if let Some(model) = &filter.model {
        conditions.add("r.model = ?", [model.clone().into()]);
    }
    if let Some(outcome) = filter.outcome {
        conditions.add("r.outcome_class = ?", [class_number(outcome).into()]);
    }
    if let Some(since_ms) = filter.since_ms {
        conditions.add(&format!("{lead}.started_ms >= ?"), [since_ms.into()]);
    }
    if let Some(until_ms) = filter.until_ms {
        conditions.add(&format!("{lead}.started_ms < ?"), [until_ms.into()]);
    }
    if let Some(after) = &filter.after {
        // The first condition is for the index, the second for runs that started in the same millisecond.
        conditions.add(&format!("{lead}.started_ms <= ?"), [after.started_ms.into()]);
        conditions.add(
            &format!("({lead}.started_ms, {lead}.org, {lead}.run_id) < (?, ?, ?)"),
            [
                after.started_ms.into(),
                after.run.org.clone().into(),
                after.run.run_id.clone().into(),
            ],
        );
    }
    if let Some(text) = filter.text.as_ref().filter(|text| !text.is_empty()) {
        let found = "instr((SELECT text FROM run_search WHERE run = r.id), ?) > 0";
        conditions.add(found, [text.to_lowercase().into()]);
    }
    conditions
}

fn row_of(row: &Row<'_>) -> Result<RunRow> {
    let monitors: BTreeMap<String, [i64; 4]> = from_json(row, "monitors")?;
    let fired = monitors.into_iter().filter(|(_, counts)| counts[0] > 0);
    Ok(RunRow {
        run: RunKey { org: row.get("org")?, run_id: row.get("run_id")? },
        version: count_from_db(row.get("version")?),
        project: row.get("project")?,
        agent_name: row.get("agent_name")?,
        task: row.get("task")?,
        model: row.get("model")?,
        framework: row.get("framework")?,
        codebase: row.get("codebase")?,
        task_profile: row.get("task_profile")?,
        parent: row.get("parent")?,
        key_name: row.get("key_name")?,
        metadata: from_json(row, "metadata")?,
        started_ms: row.get("started_ms")?,
        seen_ms: row.get("seen_ms")?,
        finished_ms: row.get("finished_ms")?,
        outcome: row.get("outcome")?,
        step_count: count_from_db(row.get("step_count")?),
        score_sum: from_nano(row.get("score_nano")?),
        score_peak: row.get("score_peak")?,
        tokens: steps::tokens(row)?,
        cost_usd: from_nano(row.get("cost_nano")?),
        injected_steps: count_from_db(row.get("injected_steps")?),
        fired: fired.map(|(name, counts)| (name, count_from_db(counts[0]))).collect(),
    })
}
