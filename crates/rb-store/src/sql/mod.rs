//! SQL that both backends share: reads of all areas, and writes that concern neither runs nor steps.
//!
//! A statement is a text with `?` for each value; PostgreSQL numbers them. `table` lists the columns of each row type
//! once, and each area of the [`Store`](crate::Store) has a module with its statements, implemented for every
//! `Database`.

/// Writes outside of runs and steps.
mod changes;
/// Gateway state of conversations.
mod conversations;
/// Keys, settings, usage.
mod keys;
/// Patterns, findings, profiles.
mod library;
/// Operator messages.
mod operator_messages;
/// Lists and aggregates of runs.
mod run_lists;
/// Single runs and their steps.
mod runs;
/// Columns of the row types.
mod table;
/// Column values.
mod value;

pub(crate) use changes::plain_writes;
pub(crate) use table::{Row, STEP_EXTRAS, Table, join, list, names, step_values, typed, upsert};
pub(crate) use value::{Columns, Converted, Field, Value, ValueError, next};

use crate::{Result, Scope};

/// Differences between the SQL of the backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Returns the function that finds the position of a text in another one.
    fn position(self) -> &'static str {
        match self {
            Self::Sqlite => "instr",
            Self::Postgres => "strpos",
        }
    }
}

/// Query with the function that reads one of its rows.
pub(crate) struct Query<T> {
    /// Operation for error messages.
    pub(crate) operation: &'static str,
    pub(crate) sql: String,
    pub(crate) values: Vec<Value<'static>>,
    pub(crate) read: fn(&mut dyn Columns) -> Converted<T>,
}

impl<T: Row> Query<T> {
    fn rows(
        operation: &'static str,
        sql: impl Into<String>,
        values: impl Into<Vec<Value<'static>>>,
    ) -> Self {
        Self { operation, sql: sql.into(), values: values.into(), read: T::read }
    }
}

impl<T: Field> Query<T> {
    /// Query of a single column.
    fn column(
        operation: &'static str,
        sql: impl Into<String>,
        values: impl Into<Vec<Value<'static>>>,
    ) -> Self {
        Self { operation, sql: sql.into(), values: values.into(), read: T::read }
    }
}

impl<A: Field, B: Field> Query<(A, B)> {
    /// Query of two columns.
    fn pairs(
        operation: &'static str,
        sql: impl Into<String>,
        values: impl Into<Vec<Value<'static>>>,
    ) -> Self {
        let read = |columns: &mut dyn Columns| Ok((next(columns)?, next(columns)?));
        Self { operation, sql: sql.into(), values: values.into(), read }
    }
}

/// Statement with its values.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value<'a>>,
}

/// Connections of a backend that can read.
pub(crate) trait Database: Send + Sync + 'static {
    const DIALECT: Dialect;

    /// Runs a query and adds each row to a value.
    fn fold<T: 'static, A: Send + 'static>(
        &self,
        query: Query<T>,
        start: A,
        add: fn(&mut A, T),
    ) -> impl Future<Output = Result<A>> + Send;

    /// Runs a query and returns all rows.
    fn select<T: Send + 'static>(
        &self,
        query: Query<T>,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        self.fold(query, Vec::new(), Vec::push)
    }

    /// Runs a query and returns its only row, if any.
    fn find<T: Send + 'static>(
        &self,
        query: Query<T>,
    ) -> impl Future<Output = Result<Option<T>>> + Send {
        self.fold(query, None, |found, row| *found = Some(row))
    }
}

/// Conditions of a query and their values in order.
#[derive(Default)]
struct Conditions {
    sql: String,
    values: Vec<Value<'static>>,
}

impl Conditions {
    /// Returns the conditions of a scope; `table` is the alias of the table with `org` and `project`.
    fn of(scope: &Scope, table: &str) -> Self {
        let mut conditions = Self::default();
        conditions.add_if(&format!("{table}.org = ?"), scope.org.as_deref());
        conditions.add_if(&format!("{table}.project = ?"), scope.project.as_deref());
        conditions
    }

    /// Adds a condition with its values.
    fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value<'static>>) {
        self.sql.push_str(if self.sql.is_empty() { "WHERE " } else { " AND " });
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    /// Adds a condition if there is a text for it.
    fn add_if(&mut self, sql: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.add(sql, [Value::text(text)]);
        }
    }
}

/// Returns the values of a list of texts.
fn texts<const N: usize>(texts: [&str; N]) -> Vec<Value<'static>> {
    texts.map(Value::text).into()
}
