//! SQL conditions of a scope.

use tokio_postgres::types::ToSql;

use super::text::EncodedText;
use crate::Scope;

/// Value of a condition.
pub(super) type Value<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Conditions of a query and their values in order.
#[derive(Default)]
pub(super) struct Conditions<'a> {
    sql: String,
    values: Vec<Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// Returns the conditions of a scope; `table` is the alias of the table with `org` and `project`.
    pub(super) fn of(scope: &'a Scope, table: &str) -> Self {
        let mut conditions = Self::default();
        conditions.add_scope(scope, table);
        conditions
    }

    /// Adds the conditions of a scope.
    pub(super) fn add_scope(&mut self, scope: &'a Scope, table: &str) {
        if let Some(org) = &scope.org {
            self.add_text(&format!("{table}.org = ?"), org);
        }
        if let Some(project) = &scope.project {
            self.add_text(&format!("{table}.project = ?"), project);
        }
    }

    pub(super) fn add_text(&mut self, sql: &str, text: &'a str) {
        self.add(sql, [Box::new(EncodedText::of(text)) as Value<'a>]);
    }

    pub(super) fn add_number(&mut self, sql: &str, number: i64) {
        self.add(sql, [Box::new(number) as Value<'a>]);
    }

    /// Adds a condition; each `?` in it refers to the next value.
    pub(super) fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value<'a>>) {
        self.sql.push_str(if self.sql.is_empty() { "WHERE " } else { " AND " });
        let mut values = values.into_iter();
        for (at, part) in sql.split('?').enumerate() {
            if at > 0
                && let Some(value) = values.next()
            {
                let place = self.place(value);
                self.sql.push_str(&place);
            }
            self.sql.push_str(part);
        }
    }

    /// Adds a value that is used outside of the conditions and returns its placeholder.
    pub(super) fn place(&mut self, value: Value<'a>) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// Returns `WHERE …`, or an empty string.
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns the values of the statement.
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
