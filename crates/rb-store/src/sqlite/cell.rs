//! How values lie in a cell of SQLite, and how they are read from it.

use rusqlite::types::{FromSql, Type};
use rusqlite::{Error, Result, Row};
use serde::de::DeserializeOwned;

use crate::json::{Emptiness, json_text};

pub(super) fn json_in<T: Emptiness>(value: &T) -> Result<Option<String>> {
    json_text(value).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}

/// The cells of a row, read one after the other: a name costs a search, and the rows of a write are read on every step.
pub(super) struct Cells<'row> {
    row: &'row Row<'row>,
    at: usize,
}

impl<'row> Cells<'row> {
    pub(super) fn of(row: &'row Row<'row>) -> Self {
        Self { row, at: 0 }
    }

    pub(super) fn next<T: FromSql>(&mut self) -> Result<T> {
        self.at += 1;
        self.row.get(self.at - 1)
    }

    pub(super) fn next_json<T: DeserializeOwned + Default>(&mut self) -> Result<T> {
        self.at += 1;
        json_at(self.row, self.at - 1)
    }
}

pub(super) fn json_out<T: DeserializeOwned + Default>(row: &Row<'_>, column: &str) -> Result<T> {
    json_at(row, row.as_ref().column_index(column)?)
}

fn json_at<T: DeserializeOwned + Default>(row: &Row<'_>, at: usize) -> Result<T> {
    let Some(text) = row.get_ref(at)?.as_str_or_null()? else { return Ok(T::default()) };
    serde_json::from_str(text)
        .map_err(|error| Error::FromSqlConversionFailure(at, Type::Text, error.into()))
}
