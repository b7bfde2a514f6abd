//! Edits of a request body that keep every other byte.
//!
//! Parsing and serialising a body changes numbers, escapes and the order of keys, which invalidates the provider's prompt
//! cache. Texts are therefore inserted into the original bytes.

use crate::json::Span;

/// A body and its edits.
#[derive(Debug, Clone)]
pub struct BodyEdits<'a> {
    body: &'a [u8],
    /// Sorted by position.
    edits: Vec<Edit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    span: Span,
    text: String,
}

impl<'a> BodyEdits<'a> {
    /// Creates an empty list of edits.
    pub fn new(body: &'a [u8]) -> Self {
        Self { body, edits: Vec::new() }
    }

    /// Inserts a text at an offset, after earlier insertions at the same offset.
    pub fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Replaces a range. An edit outside the body or into another edit is ignored.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        let at = self.edits.partition_point(|edit| edit.span.start <= span.start);
        let is_behind = at.checked_sub(1).is_none_or(|i| self.edits[i].span.end <= span.start);
        let is_before = self.edits.get(at).is_none_or(|next| span.end <= next.span.start);
        if is_behind && is_before && span.start <= span.end && span.end <= self.body.len() {
            self.edits.insert(at, Edit { span, text: text.into() });
        }
    }

    /// Adds the edits of another list for the same body.
    pub fn extend(&mut self, other: BodyEdits<'a>) {
        for edit in other.edits {
            self.replace(edit.span, edit.text);
        }
    }

    /// Returns whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Returns the length of the inserted texts.
    pub fn added(&self) -> usize {
        self.edits.iter().map(|edit| edit.text.len()).sum()
    }

    /// Returns the edited body in slices, without a copy.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.edits.iter().map(|edit| edit.span.end));
        let ends = self.edits.iter().map(|edit| edit.span.start).chain([self.body.len()]);
        let texts = self.edits.iter().map(|edit| edit.text.as_bytes()).chain([&b""[..]]);
        let kept = starts.zip(ends).map(|(start, end)| &self.body[start..end]);
        kept.zip(texts).flat_map(|(kept, text)| [kept, text]).filter(|piece| !piece.is_empty())
    }

    /// Returns the edited body.
    pub fn apply(&self) -> Vec<u8> {
        let mut edited = Vec::with_capacity(self.body.len() + self.added());
        self.pieces().for_each(|piece| edited.extend_from_slice(piece));
        edited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_come_in_the_order_of_their_places() {
        let mut edits = BodyEdits::new(b"0123456789");
        edits.insert(10, "end");
        edits.insert(0, "a");
        edits.replace(2..4, "-");
        edits.insert(0, "b");
        edits.insert(4, "c");
        edits.insert(2, "never: the bytes behind it are replaced");
        edits.replace(3..5, "never: overlaps");
        edits.replace(8..11, "never: outside");
        assert_eq!(edits.apply(), b"ab01-c456789end");
        assert_eq!(BodyEdits::new(b"as it was").apply(), b"as it was");
    }
}
