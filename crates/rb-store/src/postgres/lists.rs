//! Lists of runs, newest first.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::error::Sql;
use super::scope::{Conditions, Value};
use super::session::Session;
use super::steps::tokens;
use super::text::{EncodedText, json, text, text_maybe};
use crate::numeric::{count_from_db, from_nano};
use crate::run_metadata::class_number;
use crate::{RunFilter, RunKey, RunRow, Scope};

pub(super) async fn run(session: &Session, scope: &Scope, run_id: &str) -> Sql<Option<RunRow>> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add_text("r.run_id = ?", run_id);
    let sql = format!(
        "SELECT r.* FROM runs r {} ORDER BY r.started_ms DESC, r.org DESC LIMIT 1",
        conditions.sql()
    );
    let rows = session.select(&sql, &conditions.values()).await?;
    rows.first().map(row_of).transpose()
}

pub(super) async fn runs(session: &Session, scope: &Scope, filter: &RunFilter) -> Sql<Vec<RunRow>> {
    // With a monitor or pattern filter, its own table of runs is scanned, which has the same order.
    let (from, lead) = match (&filter.fired, &filter.pattern) {
        (Some(_), _) => ("fired_runs f JOIN runs r ON r.id = f.run", "f"),
        (None, Some(_)) => ("pattern_runs p JOIN runs r ON r.id = p.run", "p"),
        (None, None) => ("runs r", "r"),
    };
    let scope = with_only_org(session, scope).await?;
    let text = filter.text.as_ref().map(|text| text.to_lowercase()).unwrap_or_default();
    let mut conditions = conditions(&scope, filter, lead, &text);
    let count = conditions.place(Box::new(i64::from(filter.count_max)));
    let offset = conditions.place(Box::new(i64::from(filter.offset)));
    let sql = format!(
        "SELECT r.* FROM {from} {}
         ORDER BY {lead}.started_ms DESC, {lead}.org DESC, {lead}.run_id DESC LIMIT {count} OFFSET {offset}",
        conditions.sql()
    );
    session.select(&sql, &conditions.values()).await?.iter().map(row_of).collect()
}

/// Replaces an unlimited scope by the only organisation, if there is just one, so that its indexes are used.
async fn with_only_org(session: &Session, scope: &Scope) -> Sql<Scope> {
    if scope.org.is_some() {
        return Ok(scope.clone());
    }
    let sql =
        "SELECT org FROM (SELECT min(org) AS org, max(org) AS last FROM runs) o WHERE org = last";
    let rows = session.select(sql, &[]).await?;
    let org = rows.first().map(|row| text(row, "org")).transpose()?;
    Ok(Scope { org, ..scope.clone() })
}

/// Lists the organisations that have any rows.
pub(super) async fn orgs(session: &Session) -> Sql<Vec<String>> {
    let sql = "SELECT org FROM runs UNION SELECT org FROM usage UNION SELECT org FROM findings
        UNION SELECT org FROM keys ORDER BY org";
    session.select(sql, &[]).await?.iter().map(|row| text(row, "org")).collect()
}

fn conditions<'a>(
    scope: &'a Scope,
    filter: &'a RunFilter,
    lead: &str,
    text: &'a str,
) -> Conditions<'a> {
    let mut conditions = Conditions::of(scope, "r");
    if let Some(monitor) = &filter.fired {
        conditions.add_text("f.monitor = ?", monitor);
        if let Some(org) = &scope.org {
            conditions.add_text("f.org = ?", org);
        }
    }
    if let Some(pattern) = &filter.pattern {
        if lead == "p" {
            conditions.add_text("p.pattern = ?", pattern);
            if let Some(org) = &scope.org {
                conditions.add_text("p.org = ?", org);
            }
        } else {
            let shown =
                "EXISTS (SELECT 1 FROM pattern_runs p WHERE p.run = r.id AND p.pattern = ?)";
            conditions.add_text(shown, pattern);
        }
    }
    if let Some(key_name) = &filter.key_name {
        // The second condition is required for the partial index.
        conditions.add_text("r.key_name = ?", key_name);
        conditions.add("r.key_name <> ''", []);
    }
    if let Some(agent_name) = &filter.agent_name {
        conditions.add_text("r.agent_name = ?", agent_name);
    }
    if let Some(model) = &filter.model {
        conditions.add_text("r.model = ?", model);
    }
    if let Some(outcome) = filter.outcome {
        conditions.add_number("r.outcome_class = ?", class_number(outcome));
    }
    if let Some(since_ms) = filter.since_ms {
        conditions.add_number(&format!("{lead}.started_ms >= ?"), since_ms);
    }
    if let Some(until_ms) = filter.until_ms {
        conditions.add_number(&format!("{lead}.started_ms < ?"), until_ms);
    }
    if let Some(after) = &filter.after {
        // The first condition is for the index, the second for runs that started in the same millisecond.
        conditions.add_number(&format!("{lead}.started_ms <= ?"), after.started_ms);
        let place: [Value<'a>; 3] = [
            Box::new(after.started_ms),
            Box::new(EncodedText::of(&after.run.org)),
            Box::new(EncodedText::of(&after.run.run_id)),
        ];
        let before = format!("({lead}.started_ms, {lead}.org, {lead}.run_id) < (?, ?, ?)");
        conditions.add(&before, place);
    }
    if !text.is_empty() {
        let found = "strpos((SELECT w.text FROM run_search w WHERE w.run = r.id), ?) > 0";
        conditions.add_text(found, text);
    }
    conditions
}

fn row_of(row: &Row) -> Sql<RunRow> {
    let monitors: BTreeMap<String, [i64; 4]> = json(row, "monitors")?;
    let fired = monitors.into_iter().filter(|(_, counts)| counts[0] > 0);
    Ok(RunRow {
        run: RunKey { org: text(row, "org")?, run_id: text(row, "run_id")? },
        version: count_from_db(row.try_get("version")?),
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
        started_ms: row.try_get("started_ms")?,
        seen_ms: row.try_get("seen_ms")?,
        finished_ms: row.try_get("finished_ms")?,
        outcome: text_maybe(row, "outcome")?,
        step_count: count_from_db(row.try_get("step_count")?),
        score_sum: from_nano(row.try_get("score_nano")?),
        score_peak: row.try_get("score_peak")?,
        tokens: tokens(row)?,
        cost_usd: from_nano(row.try_get("cost_nano")?),
        injected_steps: count_from_db(row.try_get("injected_steps")?),
        fired: fired.map(|(name, counts)| (name, count_from_db(counts[0]))).collect(),
    })
}
