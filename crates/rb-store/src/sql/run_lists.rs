//! Lists of runs, newest first, and aggregates over them. Reads runs and never steps.

use super::table::list;
use super::{Conditions, Database, Query, Value, texts};
use crate::health_rollup::{HealthRollup, RunHealth};
use crate::run_metadata::class_number;
use crate::{ExperimentRun, Health, Result, RunFilter, RunLists, RunRow, Scope};

#[async_trait::async_trait]
impl<D: Database> RunLists for D {
    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<RunRow>> {
        // With a monitor or pattern filter, its own table of runs is scanned, which has the same order.
        let (from, lead) = match (&filter.fired, &filter.pattern) {
            (Some(_), _) => ("fired_runs f JOIN runs r ON r.id = f.run", "f"),
            (None, Some(_)) => ("pattern_runs p JOIN runs r ON r.id = p.run", "p"),
            (None, None) => ("runs r", "r"),
        };
        let scope = with_only_org(self, scope).await?;
        let mut conditions = conditions(&scope, filter, lead, D::DIALECT.position());
        let sql = format!(
            "SELECT {} FROM {from} {}
            ORDER BY {lead}.started_ms DESC, {lead}.org DESC, {lead}.run_id DESC LIMIT ? OFFSET ?",
            list::<RunRow>("r."),
            conditions.sql
        );
        conditions.values.extend([filter.count_max, filter.offset].map(|n| Value::Int(n.into())));
        self.select(Query::rows("listing runs", sql, conditions.values)).await
    }

    async fn health(&self, scope: &Scope, since_ms: i64) -> Result<Health> {
        let mut conditions = Conditions::of(scope, "r");
        conditions.add("r.started_ms >= ?", [Value::Int(since_ms)]);
        let sql = format!("SELECT {} FROM runs r {}", list::<RunHealth>(""), conditions.sql);
        let query = Query::rows("reading health", sql, conditions.values);
        Ok(self.fold(query, HealthRollup::default(), HealthRollup::add).await?.health())
    }

    async fn experiments(&self, scope: &Scope) -> Result<Vec<(String, u64)>> {
        let mut conditions = Conditions::of(scope, "r");
        conditions.add("r.experiment_id <> ''", []);
        let sql = format!(
            "SELECT experiment_id, count(*) FROM runs r {} GROUP BY experiment_id ORDER BY experiment_id",
            conditions.sql
        );
        self.select(Query::pairs("listing experiments", sql, conditions.values)).await
    }

    async fn experiment(&self, scope: &Scope, id: &str) -> Result<Vec<ExperimentRun>> {
        let mut conditions = Conditions::of(scope, "r");
        // Redundant, but required for the partial index.
        conditions.add("r.experiment_id <> ''", []);
        conditions.add("r.experiment_id = ?", [Value::text(id)]);
        let sql = format!(
            "SELECT {} FROM runs r {} ORDER BY r.started_ms, r.org, r.run_id",
            list::<ExperimentRun>(""),
            conditions.sql
        );
        self.select(Query::rows("reading an experiment", sql, conditions.values)).await
    }
}

/// Replaces an unlimited scope by the only organisation, if there is just one, so that its indexes are used.
async fn with_only_org(database: &impl Database, scope: &Scope) -> Result<Scope> {
    if scope.org.is_some() {
        return Ok(scope.clone());
    }
    let sql = "SELECT org FROM (SELECT min(org) AS org, max(org) AS last FROM runs) AS o WHERE org = last";
    let org = database.find(Query::column("listing runs", sql, [])).await?;
    Ok(Scope { org, ..scope.clone() })
}

fn conditions(scope: &Scope, filter: &RunFilter, lead: &str, position: &str) -> Conditions {
    let mut conditions = Conditions::of(scope, "r");
    if filter.fired.is_some() {
        conditions.add_if("f.monitor = ?", filter.fired.as_deref());
        conditions.add_if("f.org = ?", scope.org.as_deref());
    }
    if lead == "p" {
        conditions.add_if("p.pattern = ?", filter.pattern.as_deref());
        conditions.add_if("p.org = ?", scope.org.as_deref());
    } else {
        let shown = "EXISTS (SELECT 1 FROM pattern_runs p WHERE p.run = r.id AND p.pattern = ?)";
        conditions.add_if(shown, filter.pattern.as_deref());
    }
    // The second condition is required for the partial index.
    conditions.add_if("r.key_name = ? AND r.key_name <> ''", filter.key_name.as_deref());
    conditions.add_if("r.agent_name = ?", filter.agent_name.as_deref());
    conditions.add_if("r.model = ?", filter.model.as_deref());
    if let Some(outcome) = filter.outcome {
        conditions.add("r.outcome_class = ?", [Value::Int(class_number(outcome))]);
    }
    if let Some(since_ms) = filter.since_ms {
        conditions.add(&format!("{lead}.started_ms >= ?"), [Value::Int(since_ms)]);
    }
    if let Some(until_ms) = filter.until_ms {
        conditions.add(&format!("{lead}.started_ms < ?"), [Value::Int(until_ms)]);
    }
    if let Some(after) = &filter.after {
        // The first condition is for the index, the second for runs that started in the same millisecond.
        let started = Value::Int(after.started_ms);
        conditions.add(&format!("{lead}.started_ms <= ?"), [started.clone()]);
        let place = texts([&after.run.org, &after.run.run_id]);
        let before = format!("({lead}.started_ms, {lead}.org, {lead}.run_id) < (?, ?, ?)");
        conditions.add(&before, [started].into_iter().chain(place));
    }
    if let Some(text) = filter.text.as_ref().filter(|text| !text.is_empty()) {
        let found =
            format!("{position}((SELECT w.text FROM run_search w WHERE w.run = r.id), ?) > 0");
        conditions.add(&found, [Value::text(&text.to_lowercase())]);
    }
    conditions
}
