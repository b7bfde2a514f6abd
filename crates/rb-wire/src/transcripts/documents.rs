//! Input of JSON importers: splits a text into documents and collects runs and diagnostics.
//!
//! A text contains one JSON document, several consecutive documents, or one per line. Each is validated before an
//! importer reads it. A truncated or damaged document is passed on up to the damage. If one of the `REPAIRS`
//! makes a damaged text valid, the repaired text is read instead.

use memchr::{memchr, memchr_iter, memmem};
use serde_json::value::RawValue;

use super::lazy_json::{Json, first_line};
use super::{Diagnostic, DiagnosticKind, Imported, json};
use crate::model::Run;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Input and output of an importer.
pub(super) struct ImportContext<'a> {
    text: &'a str,
    /// Imported runs.
    pub(super) runs: Vec<Run<'a>>,
    diagnostics: Vec<Diagnostic>,
    /// Last position with its line number; the next diagnostic is usually close to it.
    counted: (usize, u64),
}

/// Maximum number of diagnostics per text.
const MAX_DIAGNOSTICS: usize = 1000;

/// Importer function for JSON texts.
pub(super) type Read = for<'a> fn(&mut ImportContext<'a>);

/// Repair function and the diagnostic that reports it.
type Repair = (fn(&str) -> Option<String>, DiagnosticKind);

const REPAIRS: [Repair; 2] = [
    (json::without_nan, DiagnosticKind::NotANumber),
    (json::without_wrapped_lines, DiagnosticKind::Wrapped),
];

/// Runs an importer on arbitrary bytes.
pub(super) fn import(input: &[u8], read: Read) -> Imported<'_> {
    let bytes = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
    match std::str::from_utf8(bytes) {
        Ok(text) => import_text(text, read),
        // Only the last character is truncated.
        Err(error) if error.error_len().is_none() => {
            let text = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            import_text(text, read)
        }
        Err(error) => {
            let line = line_at(&bytes[..error.valid_up_to()]);
            let (runs, mut diagnostics) =
                import_text(&String::from_utf8_lossy(bytes), read).owned();
            diagnostics.push(Diagnostic { line, kind: DiagnosticKind::NotUnicode });
            (runs, diagnostics)
        }
    }
}

fn import_text(text: &str, read: Read) -> Imported<'_> {
    let found = import_as_it_is(text, read);
    let Some(line) = found.1.iter().find(|diagnostic| is_damage(diagnostic)).map(|it| it.line)
    else {
        return found;
    };
    for (repair, kind) in REPAIRS {
        let Some(repaired) = repair(text) else { continue };
        let (runs, mut diagnostics) = import_as_it_is(&repaired, read).owned();
        if !diagnostics.iter().any(is_damage) {
            diagnostics.push(Diagnostic { line, kind });
            return (runs, diagnostics);
        }
    }
    found
}

fn import_as_it_is(text: &str, read: Read) -> Imported<'_> {
    let mut context =
        ImportContext { text, runs: Vec::new(), diagnostics: Vec::new(), counted: (0, 1) };
    read(&mut context);
    context.report_lone_surrogates();
    context.diagnostics.sort_by_key(|diagnostic| diagnostic.line);
    (context.runs, context.diagnostics)
}

fn is_damage(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.kind, DiagnosticKind::Damaged { .. } | DiagnosticKind::CutOff)
}

/// Conversion of an import result to owned texts.
trait Owned {
    fn owned(self) -> Imported<'static>;
}

impl Owned for Imported<'_> {
    fn owned(self) -> Imported<'static> {
        (self.0.into_iter().map(Run::into_owned).collect(), self.1)
    }
}

/// Returns the line number at the end of `before`, counted from 1.
fn line_at(before: &[u8]) -> u64 {
    1 + u64::try_from(memchr_iter(b'\n', before).count()).unwrap_or(u64::MAX - 1)
}

impl<'a> ImportContext<'a> {
    /// Adds a diagnostic for a value of this text.
    pub(super) fn report(&mut self, about: Json<'_>, kind: DiagnosticKind) {
        let start = self.text.as_ptr().addr();
        let at = about.raw().as_ptr().addr().checked_sub(start).filter(|at| *at <= self.text.len());
        self.report_at(at.unwrap_or_default(), kind);
    }

    fn report_at(&mut self, at: usize, kind: DiagnosticKind) {
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            return;
        }
        let (from, line) = if at >= self.counted.0 { self.counted } else { (0, 1) };
        let between = self.text.as_bytes().get(from..at).unwrap_or_default();
        self.counted = (at, line + line_at(between) - 1);
        self.diagnostics.push(Diagnostic { line: self.counted.1, kind });
    }

    /// Adds one diagnostic for all values that are not objects.
    pub(super) fn report_non_objects(&mut self, others: &[Json<'_>]) {
        if let Some(first) = others.first() {
            let kind = DiagnosticKind::NotRecords { found: first.kind(), count: others.len() };
            self.report(*first, kind);
        }
    }

    /// Reports lone surrogates; texts without surrogate escapes are not searched.
    fn report_lone_surrogates(&mut self) {
        let bytes = self.text.as_bytes();
        let is_likely =
            [&b"\\ud"[..], b"\\uD"].iter().any(|half| memmem::find(bytes, half).is_some());
        if is_likely && let Some(at) = json::lone_surrogate(self.text) {
            self.report_at(at, DiagnosticKind::NotUnicode);
        }
    }

    /// Returns the objects of the text: its documents, or the elements of a document that is a list.
    pub(super) fn records(&mut self) -> Vec<Json<'a>> {
        let (mut records, mut others) = (Vec::new(), Vec::new());
        for document in self.documents() {
            let candidates: &mut dyn Iterator<Item = Json<'a>> = if document.is_list() {
                &mut document.items()
            } else {
                &mut std::iter::once(document)
            };
            for record in candidates {
                if record.is_object() {
                    records.push(record);
                } else if !record.is_list() {
                    others.push(record);
                } else {
                    // Nested lists, such as pairs and batches, are flattened once.
                    records.extend(record.items().filter(|inner| inner.is_object()));
                }
            }
        }
        self.report_non_objects(&others);
        records
    }

    /// Returns the documents of the text; the last may be truncated.
    pub(super) fn documents(&mut self) -> Vec<Json<'a>> {
        let mut documents = Vec::new();
        let mut at = 0;
        // After a document reaches the end of the text, no later document can span several lines.
        let mut may_span_lines = true;
        while let Some(rest) = self.text.get(at..) {
            let blank = rest.len() - rest.trim_ascii_start().len();
            at += blank;
            let rest = &rest[blank..];
            if rest.is_empty() {
                break;
            }
            let line = first_line(rest);
            if let Ok(value) = serde_json::from_str::<&RawValue>(line) {
                documents.push(Json::new(value.get(), true));
                at += line.len();
                continue;
            }
            let text = if may_span_lines { rest } else { line };
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
            match values.next() {
                Some(Ok(value)) => {
                    documents.push(Json::new(value.get(), true));
                    at += values.byte_offset();
                }
                Some(Err(error)) => {
                    let (used, is_end) = self.damaged(rest, line, at, &error, &mut documents);
                    may_span_lines &= !is_end;
                    at += used;
                }
                None => break,
            }
        }
        documents
    }

    /// Reads the valid part of a damaged document. Returns the number of bytes consumed, and whether the document
    /// reaches the end of the text.
    fn damaged(
        &mut self,
        rest: &'a str,
        line: &'a str,
        at: usize,
        error: &serde_json::Error,
        documents: &mut Vec<Json<'a>>,
    ) -> (usize, bool) {
        let next_line = rest.get(line.len() + 1..).unwrap_or_default();
        if error.is_eof() {
            let begins_anew = next_line.starts_with('{') && is_whole(first_line(next_line));
            let text = if begins_anew { line } else { rest };
            documents.push(Json::new(text, false));
            if begins_anew {
                self.report_at(at, damage(error, line.len()));
            } else {
                self.report_at(at + text.len(), DiagnosticKind::CutOff);
            }
            return (text.len(), true);
        }
        let good = offset(rest, error);
        let text = &rest[..good];
        self.report_at(at + good, damage(error, error.column()));
        if Json::first(text).is_some_and(|value| value.is_object() || value.is_list()) {
            documents.push(Json::new(text, false));
        }
        (next_document(rest, good.max(line.len())), false)
    }
}

/// Returns the position of the next line that starts like a document; other lines after damage are remains of the
/// damaged one.
fn next_document(text: &str, from: usize) -> usize {
    let begins = |at: usize| text.get(at..).is_some_and(|rest| rest.starts_with(['{', '[']));
    if text.as_bytes().get(from.wrapping_sub(1)) == Some(&b'\n') && begins(from) {
        return from;
    }
    let mut at = from;
    while let Some(len) = text.as_bytes().get(at..).and_then(|rest| memchr(b'\n', rest)) {
        at += len + 1;
        if begins(at) {
            return at;
        }
    }
    text.len()
}

/// Returns `true` if a line is one JSON document.
pub(super) fn is_whole(line: &str) -> bool {
    serde_json::from_str::<&RawValue>(line).is_ok()
}

fn damage(error: &serde_json::Error, column: usize) -> DiagnosticKind {
    let message = error.to_string();
    let detail = message.rsplit_once(" at line ").map_or(message.as_str(), |(detail, _)| detail);
    DiagnosticKind::Damaged { detail: detail.to_owned(), column }
}

/// Returns the offset up to which the text is valid JSON; the parser reports lines and columns.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let mut start = 0;
    for _ in 1..error.line() {
        match memchr(b'\n', &text.as_bytes()[start..]) {
            Some(len) => start += len + 1,
            None => break,
        }
    }
    let mut at = (start + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the documents, with `…` after truncated ones, and the diagnostics.
    fn told(text: &str) -> (Vec<String>, Vec<String>) {
        let mut context =
            ImportContext { text, runs: Vec::new(), diagnostics: Vec::new(), counted: (0, 1) };
        let documents = context.documents();
        let shown = |document: &Json<'_>| {
            let cut = if is_whole(document.raw()) { "" } else { "…" };
            format!("{}{cut}", document.raw().trim_end())
        };
        let diagnostics = context.diagnostics.iter().map(ToString::to_string).collect();
        (documents.iter().map(shown).collect(), diagnostics)
    }

    #[test]
    fn documents_in_every_arrangement() {
        let cases: [(&str, &[&str], usize); 14] = [
            ("", &[], 0),
            (" \n\n", &[], 0),
            ("{}", &["{}"], 0),
            ("{\"a\":1}\n\n[2]\n", &["{\"a\":1}", "[2]"], 0),
            ("{\n\"a\":\n1}\n", &["{\n\"a\":\n1}"], 0),
            ("{\n}\n{\n}", &["{\n}", "{\n}"], 0),
            ("{} {\"b\":2} \n{}", &["{}", "{\"b\":2}", "{}"], 0),
            ("{}\n{\"a\": [1, ", &["{}", "{\"a\": [1,…"], 1),
            ("{\n\"a\": [1,\n2", &["{\n\"a\": [1,\n2…"], 1),
            ("{\"a\": 1\n{\"b\": 2}", &["{\"a\": 1…", "{\"b\": 2}"], 1),
            (
                "{\"a\": \"b\n{\"c\": 2}\n{\"d\": 3}",
                &["{\"a\": \"…", "{\"c\": 2}", "{\"d\": 3}"],
                1,
            ),
            ("oops\n{}", &["{}"], 1),
            ("{\"a\": 1, oops}\n{}", &["{\"a\": 1,…", "{}"], 1),
            ("{\n\"a\": 1,\noops}\n{}", &["{\n\"a\": 1,…", "{}"], 1),
        ];
        for (text, documents, diagnostics) in cases {
            let (seen, said) = told(text);
            assert_eq!(seen, documents, "{text:?} {said:?}");
            assert_eq!(said.len(), diagnostics, "{text:?} {said:?}");
        }
    }

    #[test]
    fn complaints_say_where() {
        let (_, said) = told("{}\n{\"a\": 1, oops}\n{\"b\": [");
        assert_eq!(said.len(), 2);
        assert!(
            said[0].starts_with("line 2: not JSON (key must be a string, column 10)"),
            "{said:?}"
        );
        assert!(said[1].starts_with("line 3: ends in the middle"), "{said:?}");
    }

    #[test]
    fn a_hostile_text_is_not_read_over_and_over() {
        let text = "[1,\n{}\n".repeat(50_000);
        let started = std::time::Instant::now();
        let _ = told(&text);
        assert!(started.elapsed().as_secs() < 20);
    }
}
