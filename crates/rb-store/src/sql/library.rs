//! Guidance patterns (E1 of an organisation, E2 and E3 of all), findings and profiles.

use super::table::{Row, list, names};
use super::{Columns, Conditions, Converted, Database, Query, Value, next, texts};
use crate::numeric::count_to_db;
use crate::{
    FindingRow, Library, PatternChange, PatternFilter, PatternRow, ProfileRow, Result, Scope,
};

#[async_trait::async_trait]
impl<D: Database> Library for D {
    async fn patterns(&self, scope: &Scope, filter: &PatternFilter) -> Result<Vec<PatternRow>> {
        let mut conditions = Conditions::default();
        // A pattern with an organisation belongs to it regardless of its tier.
        conditions.add_if("(org = ? OR (org = '' AND tier <> 'e1'))", scope.org.as_deref());
        conditions.add_if("tier = ?", filter.tier.as_deref());
        if let Some((tier, id, org)) = &filter.after {
            conditions.add("(tier, pattern_id, org) > (?, ?, ?)", texts([tier, id, org]));
        }
        let sql = format!(
            "SELECT {} FROM patterns {} ORDER BY tier, pattern_id, org LIMIT ?",
            list::<PatternRow>(""),
            conditions.sql
        );
        conditions.values.push(Value::Int(filter.count_max.into()));
        self.select(Query::rows("listing patterns", sql, conditions.values)).await
    }

    async fn pattern(&self, org: &str, tier: &str, pattern_id: &str) -> Result<Option<PatternRow>> {
        let sql = format!(
            "SELECT {} FROM patterns WHERE org = ? AND tier = ? AND pattern_id = ?",
            list::<PatternRow>("")
        );
        self.find(Query::rows("reading a pattern", sql, texts([org, tier, pattern_id]))).await
    }

    async fn pattern_changes(
        &self,
        after_version: u64,
        count_max: u32,
    ) -> Result<Vec<(u64, PatternChange)>> {
        // One statement, so that puts and deletions are read from one snapshot. Each half is ordered and limited:
        // otherwise all newer rows are sorted for every page (1 s at 500,000 rows).
        let page = "WHERE version > ? ORDER BY version LIMIT ?";
        let nulls = ", NULL".repeat(names::<PatternRow>().count() - 3);
        let sql = format!(
            "SELECT * FROM (SELECT version, true AS is_there, {} FROM patterns {page}) AS p
            UNION ALL SELECT version, false, org, tier, pattern_id{nulls}
            FROM (SELECT version, org, tier, pattern_id FROM patterns_gone {page}) AS g
            ORDER BY version LIMIT ?",
            list::<PatternRow>("")
        );
        let (after, count) = (Value::Int(count_to_db(after_version)), Value::Int(count_max.into()));
        let values = vec![after.clone(), count.clone(), after, count.clone(), count];
        let operation = "reading pattern changes";
        self.select(Query { operation, sql, values, read: pattern_change }).await
    }

    async fn findings(&self, org: &str, codebase: &str) -> Result<Vec<FindingRow>> {
        let sql = format!(
            "SELECT {} FROM findings WHERE org = ? AND codebase = ? ORDER BY created_ms, finding_id",
            list::<FindingRow>("")
        );
        self.select(Query::rows("listing findings", sql, texts([org, codebase]))).await
    }

    async fn codebases(&self, scope: &Scope) -> Result<Vec<String>> {
        let mut of_runs = Conditions::of(scope, "r");
        of_runs.add("r.codebase <> ''", []);
        let mut sql = format!("SELECT codebase FROM runs r {}", of_runs.sql);
        if scope.project.is_none() {
            let of_findings = Conditions::of(scope, "f");
            sql = format!("{sql} UNION SELECT codebase FROM findings f {}", of_findings.sql);
            of_runs.values.extend(of_findings.values);
        }
        let sql = format!("SELECT DISTINCT codebase FROM ({sql}) AS c ORDER BY codebase");
        self.select(Query::column("listing codebases", sql, of_runs.values)).await
    }

    async fn profiles(&self, scope: &Scope) -> Result<Vec<ProfileRow>> {
        let mut conditions = Conditions::default();
        conditions.add_if("org = ?", scope.org.as_deref());
        conditions.add_if("project IN ('', ?)", scope.project.as_deref());
        let sql = format!(
            "SELECT {} FROM profiles {} ORDER BY org, project, profile_id",
            list::<ProfileRow>(""),
            conditions.sql
        );
        self.select(Query::rows("listing profiles", sql, conditions.values)).await
    }
}

fn pattern_change(columns: &mut dyn Columns) -> Converted<(u64, PatternChange)> {
    let version = next(columns)?;
    let change = if next(columns)? {
        PatternChange::Put(Box::new(PatternRow::read(columns)?))
    } else {
        let (org, tier, pattern_id) = (next(columns)?, next(columns)?, next(columns)?);
        PatternChange::Gone { org, tier, pattern_id }
    };
    Ok((version, change))
}
