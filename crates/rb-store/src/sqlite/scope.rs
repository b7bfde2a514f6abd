//! SQL conditions of a scope.

use rusqlite::types::Value;

use crate::Scope;

/// Conditions of a query and their values in order.
#[derive(Default)]
pub(super) struct Conditions {
    sql: String,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    /// Returns the conditions of a scope; `table` is the alias of the table with `org` and `project`.
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

    /// Returns `WHERE …`, or an empty string.
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }
}
