//! Preview of a file, parsed once and shared by the format detection of all importers.

use super::lazy_json::Json;

/// Maximum size of the preview in bytes.
const BYTES_MAX: usize = 64 << 10;
/// Maximum number of records in the preview.
const RECORDS_MAX: usize = 16;

/// First records of a file: its documents, or the elements of a document that is a list. The last record may be
/// truncated.
#[derive(Debug)]
pub struct FilePreview<'a> {
    records: Vec<Record<'a>>,
    is_list: bool,
}

/// Entries of one object.
#[derive(Debug)]
pub(super) struct Record<'a> {
    value: Json<'a>,
    entries: Vec<(&'a str, Json<'a>)>,
}

impl<'a> FilePreview<'a> {
    /// Parses the start of a file, of any length.
    pub fn at(beginning: &'a [u8]) -> Self {
        let bytes = beginning.get(..BYTES_MAX).unwrap_or(beginning);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let mut preview = Self { records: Vec::new(), is_list: false };
        let mut rest = text.trim_start_matches('\u{feff}').trim_ascii_start();
        while preview.records.len() < RECORDS_MAX && !rest.is_empty() {
            let value = Json::first(rest).filter(|value| value.is_object() || value.is_list());
            let end = match value {
                Some(value) => {
                    preview.take(value);
                    value.raw().len()
                }
                // Not JSON; continue with the next line.
                None => rest.find('\n').unwrap_or(rest.len()),
            };
            rest = rest[end..].trim_ascii_start();
        }
        preview
    }

    fn take(&mut self, value: Json<'a>) {
        if value.is_list() {
            self.is_list |= self.records.is_empty();
            let items = value.items().flat_map(|item| {
                // Pairs of records are flattened.
                let inner = item.items().filter(|inner| inner.is_object());
                inner.chain(Some(item).filter(|item| item.is_object()))
            });
            let records = items.map(Record::of);
            self.records.extend(records.take(RECORDS_MAX));
        } else {
            self.records.push(Record::of(value));
        }
    }

    /// Returns `true` if the file is a list of records.
    pub(super) fn is_list(&self) -> bool {
        self.is_list
    }

    /// Returns `true` if any record matches the predicate.
    pub(super) fn any(&self, is_like_it: impl Fn(&Record<'a>) -> bool) -> bool {
        self.records.iter().any(is_like_it)
    }

    /// Returns `true` if any record has all of these keys.
    pub(super) fn has(&self, keys: &[&str]) -> bool {
        self.any(|record| keys.iter().all(|key| record.get(key).is_some()))
    }
}

impl<'a> Record<'a> {
    fn of(value: Json<'a>) -> Self {
        Self { value, entries: value.entries().collect() }
    }

    /// Returns the record as a JSON value.
    pub(super) fn value(&self) -> Json<'a> {
        self.value
    }

    pub(super) fn get(&self, key: &str) -> Option<Json<'a>> {
        self.entries.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// Returns `true` if the value of a key equals one of these texts.
    pub(super) fn is(&self, key: &str, texts: &[&str]) -> bool {
        self.get(key).is_some_and(|value| texts.iter().any(|text| value.is(text)))
    }

    /// Returns `true` if any key starts with the prefix.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        self.entries.iter().any(|(key, _)| key.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_in_every_arrangement() {
        for (text, is_list, keys) in [
            ("", false, vec![]),
            ("oops", false, vec![]),
            ("{\"a\": 1}", false, vec!["a"]),
            ("\u{feff} {\"a\": 1}\n{\"b\": 2}", false, vec!["a", "b"]),
            ("{\n\"a\": [1,\n2", false, vec!["a"]),
            ("[{\"a\": 1}, 2, {\"b\": ", true, vec!["a"]),
            ("[[{\"a\": 1}, {\"b\": 2}]]", true, vec!["a", "b"]),
            ("oops\n{\"a\": 1}", false, vec!["a"]),
        ] {
            let preview = FilePreview::at(text.as_bytes());
            let seen: Vec<&str> = preview
                .records
                .iter()
                .flat_map(|r| r.entries.iter().map(|(key, _)| *key))
                .collect();
            assert_eq!((preview.is_list(), seen), (is_list, keys), "{text}");
        }
    }

    #[test]
    fn a_long_beginning_is_looked_at_in_part() {
        let text = format!("{{\"a\": \"{}\"", "é".repeat(BYTES_MAX));
        assert!(FilePreview::at(text.as_bytes()).has(&["a"]));
        let text = "{\"a\": 1}\n".repeat(1000);
        assert_eq!(FilePreview::at(text.as_bytes()).records.len(), RECORDS_MAX);
    }
}
