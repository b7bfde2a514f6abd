//! Whose rows a statement sees: the one place that turns a `Scope` into SQL.

use tokio_postgres::types::ToSql;

use super::text::TextIn;
use crate::Scope;

/// A value that a condition asks for.
pub(super) type Value<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// The conditions of a query and the values they ask for, in order.
#[derive(Default)]
pub(super) struct Conditions<'a> {
    sql: String,
    values: Vec<Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// Rows of the scope alone; `table` is the name that has `org` and `project` in the query.
    pub(super) fn of(scope: &'a Scope, table: &str) -> Self {
        let mut conditions = Self::default();
        conditions.see(scope, table);
        conditions
    }

    /// Adds the conditions of a scope to those there are.
    pub(super) fn see(&mut self, scope: &'a Scope, table: &str) {
        if let Some(org) = &scope.org {
            self.add_text(&format!("{table}.org = ?"), org);
        }
        if let Some(project) = &scope.project {
            self.add_text(&format!("{table}.project = ?"), project);
        }
    }

    pub(super) fn add_text(&mut self, sql: &str, text: &'a str) {
        self.add(sql, [Box::new(TextIn::of(text)) as Value<'a>]);
    }

    pub(super) fn add_number(&mut self, sql: &str, number: i64) {
        self.add(sql, [Box::new(number) as Value<'a>]);
    }

    /// A condition; each `?` in it takes the next value.
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

    /// Takes a value that is used outside of the conditions, and says how it is referred to.
    pub(super) fn place(&mut self, value: Value<'a>) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// `WHERE …`, or nothing.
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// What the statement is executed with.
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
