//! Encoding of text and JSON columns. PostgreSQL accepts no NUL character, which agents do print, so NUL and the
//! escape character are each stored as two characters.

use std::borrow::Cow;
use std::error::Error;

use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::error::Sql;
use crate::json::{JsonCollection, json_text};

/// Escape character.
const ESCAPE: char = '\u{1A}';
/// Follows the escape character in place of NUL.
const ESCAPED_NUL: char = '0';

/// Text parameter.
#[derive(Debug)]
pub(super) struct EncodedText<'a>(Cow<'a, str>);

impl<'a> EncodedText<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        if !text.contains(['\0', ESCAPE]) {
            return Self(Cow::Borrowed(text));
        }
        let mut written = String::with_capacity(text.len() + 16);
        for character in text.chars() {
            match character {
                '\0' => written.extend([ESCAPE, ESCAPED_NUL]),
                ESCAPE => written.extend([ESCAPE, ESCAPE]),
                other => written.push(other),
            }
        }
        Self(Cow::Owned(written))
    }

    pub(super) fn maybe(text: Option<&'a str>) -> Option<Self> {
        text.map(Self::of)
    }

    /// Encodes a list or map as JSON; `None` if it is empty.
    pub(super) fn json<T: JsonCollection>(value: &T) -> Sql<Option<EncodedText<'static>>> {
        Ok(json_text(value)?.map(|text| EncodedText(Cow::Owned(text))))
    }
}

impl ToSql for EncodedText<'_> {
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

/// Text column.
struct DecodedText(String);

impl<'a> FromSql<'a> for DecodedText {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let text = <&str>::from_sql(ty, raw)?;
        if !text.contains(ESCAPE) {
            return Ok(Self(text.to_owned()));
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
        Ok(Self(read))
    }

    fn accepts(ty: &Type) -> bool {
        <&str as FromSql>::accepts(ty)
    }
}

/// Reads a text column.
pub(super) fn text(row: &Row, column: &str) -> Sql<String> {
    Ok(row.try_get::<_, DecodedText>(column)?.0)
}

/// Reads a nullable text column.
pub(super) fn text_maybe(row: &Row, column: &str) -> Sql<Option<String>> {
    Ok(row.try_get::<_, Option<DecodedText>>(column)?.map(|text| text.0))
}

/// Reads a JSON column; NULL is an empty list or map.
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
    fn every_text_is_read_back_and_stored_without_nul() {
        for text in
            ["", "plain", "\0", "a\0b", "\u{1A}", "\u{1A}0", "\0\u{1A}\0\u{30}", "\u{1A}\0", "ü\0ü"]
        {
            let written = EncodedText::of(text);
            assert!(!written.0.contains('\0'), "{text:?}");
            let read = DecodedText::from_sql(&Type::TEXT, written.0.as_bytes()).unwrap();
            assert_eq!(read.0, text, "{text:?} was written as {:?}", written.0);
        }
    }
}
