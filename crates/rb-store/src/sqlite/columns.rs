//! Conversion of column values.

use rusqlite::types::{FromSql, Type};
use rusqlite::{Error, Result, Row};
use serde::de::DeserializeOwned;

use crate::json::{JsonCollection, json_text};

pub(super) fn to_json<T: JsonCollection>(value: &T) -> Result<Option<String>> {
    json_text(value).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}

/// Reads columns by position: a lookup by name costs a search, and this is used on every write of a step.
pub(super) struct Columns<'row> {
    row: &'row Row<'row>,
    at: usize,
}

impl<'row> Columns<'row> {
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

pub(super) fn from_json<T: DeserializeOwned + Default>(row: &Row<'_>, column: &str) -> Result<T> {
    json_at(row, row.as_ref().column_index(column)?)
}

fn json_at<T: DeserializeOwned + Default>(row: &Row<'_>, at: usize) -> Result<T> {
    let Some(text) = row.get_ref(at)?.as_str_or_null()? else { return Ok(T::default()) };
    serde_json::from_str(text)
        .map_err(|error| Error::FromSqlConversionFailure(at, Type::Text, error.into()))
}
