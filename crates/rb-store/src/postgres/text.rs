//! Texts and JSON on their way in and out. PostgreSQL takes every character but the zero byte, which agents do print:
//! it is written as two characters, and so is the first of these two, so that every text comes back as it was.

use std::borrow::Cow;
use std::error::Error;

use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::fault::Sql;
use crate::json::{Emptiness, json_text};

/// Stands before a character that stands for another.
const MARK: char = '\u{1A}';
/// After the mark: a zero byte.
const ZERO: char = '0';

/// A text on its way in.
#[derive(Debug)]
pub(super) struct TextIn<'a>(Cow<'a, str>);

impl<'a> TextIn<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        if !text.contains(['\0', MARK]) {
            return Self(Cow::Borrowed(text));
        }
        let mut written = String::with_capacity(text.len() + 16);
        for character in text.chars() {
            match character {
                '\0' => written.extend([MARK, ZERO]),
                MARK => written.extend([MARK, MARK]),
                other => written.push(other),
            }
        }
        Self(Cow::Owned(written))
    }

    pub(super) fn maybe(text: Option<&'a str>) -> Option<Self> {
        text.map(Self::of)
    }

    /// A list or map, and nothing where it is empty.
    pub(super) fn json<T: Emptiness>(value: &T) -> Sql<Option<TextIn<'static>>> {
        Ok(json_text(value)?.map(|text| TextIn(Cow::Owned(text))))
    }
}

impl ToSql for TextIn<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.as_ref().to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        <&str as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

/// A text on its way out.
struct TextOut(String);

impl<'a> FromSql<'a> for TextOut {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let text = <&str>::from_sql(ty, raw)?;
        if !text.contains(MARK) {
            return Ok(Self(text.to_owned()));
        }
        let mut read = String::with_capacity(text.len());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                MARK => read.push(if characters.next() == Some(ZERO) { '\0' } else { MARK }),
                other => read.push(other),
            }
        }
        Ok(Self(read))
    }

    fn accepts(ty: &Type) -> bool {
        <&str as FromSql>::accepts(ty)
    }
}

/// A column of texts.
pub(super) fn text(row: &Row, column: &str) -> Sql<String> {
    Ok(row.try_get::<_, TextOut>(column)?.0)
}

/// A column of texts some of which are absent.
pub(super) fn text_maybe(row: &Row, column: &str) -> Sql<Option<String>> {
    Ok(row.try_get::<_, Option<TextOut>>(column)?.map(|text| text.0))
}

/// A column of JSON; nothing is an empty list or map.
pub(super) fn json<T: DeserializeOwned + Default>(row: &Row, column: &str) -> Sql<T> {
    match row.try_get::<_, Option<&str>>(column)? {
        Some(text) => Ok(serde_json::from_str(text)?),
        None => Ok(T::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_none_has_a_zero_byte_in_between() {
        for text in
            ["", "plain", "\0", "a\0b", "\u{1A}", "\u{1A}0", "\0\u{1A}\0\u{30}", "\u{1A}\0", "ü\0ü"]
        {
            let written = TextIn::of(text);
            assert!(!written.0.contains('\0'), "{text:?}");
            let read = TextOut::from_sql(&Type::TEXT, written.0.as_bytes()).unwrap();
            assert_eq!(read.0, text, "{text:?} was written as {:?}", written.0);
        }
    }
}
