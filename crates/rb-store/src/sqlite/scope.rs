//! Whose rows a statement sees: the one place that turns a `Scope` into SQL.

use rusqlite::types::Value;

use crate::Scope;

/// The conditions of a query and the values they ask for, in order.
#[derive(Default)]
pub(super) struct Conditions {
    sql: String,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    /// Rows of the scope alone; `table` is the name that has `org` and `project` in the query.
    pub(super) fn of(scope: &Scope, table: &str) -> Self {
        let mut conditions = Self::default();
        if let Some(org) = &scope.org {
            conditions.add(&format!("{table}.org = ?"), [org.clone().into()]);
        }
        if let Some(project) = &scope.project {
            conditions.add(&format!("{table}.project = ?"), [project.clone().into()]);
        }
        conditions
    }

    pub(super) fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(if self.sql.is_empty() { "WHERE " } else { " AND " });
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    /// `WHERE …`, or nothing.
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }
}
