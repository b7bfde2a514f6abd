//! Single runs and their steps.

use super::table::{Row, list};
use super::{Columns, Conditions, Converted, Database, Query, Value, next};
use crate::{Result, RunKey, RunRow, Runs, Scope, StepRow};

#[async_trait::async_trait]
impl<D: Database> Runs for D {
    async fn run(&self, scope: &Scope, run_id: &str) -> Result<Option<RunRow>> {
        let mut conditions = Conditions::of(scope, "r");
        conditions.add("r.run_id = ?", [Value::text(run_id)]);
        let sql = format!(
            "SELECT {} FROM runs r {} ORDER BY r.started_ms DESC, r.org DESC LIMIT 1",
            list::<RunRow>("r."),
            conditions.sql
        );
        self.find(Query::rows("reading a run", sql, conditions.values)).await
    }

    async fn steps(&self, run: &RunKey, from_index: u32, count_max: u32) -> Result<Vec<StepRow>> {
        let sql = format!(
            "SELECT scores, {} FROM steps
            WHERE run = (SELECT id FROM runs WHERE run_id = ? AND org = ?) AND step_index >= ?
            ORDER BY step_index LIMIT ?",
            list::<StepRow>("")
        );
        let values = vec![
            Value::text(&run.run_id),
            Value::text(&run.org),
            Value::Int(from_index.into()),
            Value::Int(count_max.into()),
        ];
        let mut steps =
            self.select(Query { operation: "reading steps", sql, values, read: step }).await?;
        for step in &mut steps {
            step.run.clone_from(run);
        }
        Ok(steps)
    }
}

fn step(columns: &mut dyn Columns) -> Converted<StepRow> {
    let scores = next(columns)?;
    Ok(StepRow { scores, ..StepRow::read(columns)? })
}
