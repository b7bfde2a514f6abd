//! Parameters and columns of PostgreSQL. Text cannot contain NUL, which agents do print, so NUL and the escape character
//! are each stored as two characters.

use std::borrow::Cow;
use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Column, Row};

use crate::sql::{Columns, Converted, Value, ValueError};

/// Escape character.
const ESCAPE: char = '\u{1A}';
/// Follows the escape character in place of NUL.
const ESCAPED_NUL: char = '0';

fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\0' => written.extend([ESCAPE, ESCAPED_NUL]),
            ESCAPE => written.extend([ESCAPE, ESCAPE]),
            other => written.push(other),
        }
    }
    Cow::Owned(written)
}

fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    let mut read = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => {
                read.push(if characters.next() == Some(ESCAPED_NUL) { '\0' } else { ESCAPE });
            }
            other => read.push(other),
        }
    }
    Cow::Owned(read)
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(flag) if *ty == Type::BOOL => flag.to_sql(ty, out),
            Self::Int(number) if *ty == Type::INT8 => number.to_sql(ty, out),
            Self::Real(number) if *ty == Type::FLOAT8 => number.to_sql(ty, out),
            Self::Text(text) if <&str as ToSql>::accepts(ty) => encode(text).to_sql(ty, out),
            Self::Bool(_) | Self::Int(_) | Self::Real(_) | Self::Text(_) => {
                Err(format!("{self:?} is no {ty}").into())
            }
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::BOOL, Type::INT8, Type::FLOAT8].contains(ty) || <&str as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

/// Text parameter.
pub(super) fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

/// Columns of a row in order.
pub(super) struct RowColumns<'row> {
    row: &'row Row,
    position: usize,
}

impl<'row> RowColumns<'row> {
    pub(super) fn of(row: &'row Row) -> Self {
        Self { row, position: 0 }
    }

    fn get<T: FromSql<'row>>(&self, value: fn(T) -> Value<'row>) -> Converted<Value<'row>> {
        let column = self.position;
        match self.row.try_get::<_, Option<T>>(column) {
            Ok(found) => Ok(found.map_or(Value::Null, value)),
            Err(error) => Err(ValueError::Database { column, cause: error.to_string() }),
        }
    }
}

impl Columns for RowColumns<'_> {
    fn position(&self) -> usize {
        self.position
    }

    fn next(&mut self) -> Converted<Value<'_>> {
        let column = self.row.columns().get(self.position);
        let value = match column.map(Column::type_) {
            Some(&Type::BOOL) => self.get(Value::Bool),
            Some(&Type::INT8) => self.get(Value::Int),
            Some(&Type::FLOAT8) => self.get(Value::Real),
            Some(_) | None => self.get(|text| Value::Text(decode(text))),
        };
        self.position += 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_back_and_stored_without_nul() {
        for text in
            ["", "plain", "\0", "a\0b", "\u{1A}", "\u{1A}0", "\0\u{1A}\0\u{30}", "\u{1A}\0", "ü\0ü"]
        {
            let written = encode(text);
            assert!(!written.contains('\0'), "{text:?}");
            assert_eq!(decode(&written), text, "{text:?} was written as {written:?}");
        }
    }
}
