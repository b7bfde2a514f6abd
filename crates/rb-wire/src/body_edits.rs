//! Edits of a body that leave every other byte as it was.
//!
//! Parsing a body and writing it anew changes numbers, escapes and the order of keys, and with them what the provider
//! has cached. So a body is never written anew: pieces are put into it, and everything between them is the client's.

use crate::json::Span;

/// A body and what is to be put into it.
#[derive(Debug, Clone)]
pub struct BodyEdits<'a> {
    body: &'a [u8],
    /// In the order of their places.
    edits: Vec<Edit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    span: Span,
    text: String,
}

impl<'a> BodyEdits<'a> {
    /// No edits yet.
    pub fn new(body: &'a [u8]) -> Self {
        Self { body, edits: Vec::new() }
    }

    /// Puts a text before the byte at `at`, behind whatever was put there earlier.
    pub fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Puts a text in the place of some bytes. What reaches outside the body or into another edit is not done.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        let at = self.edits.partition_point(|edit| edit.span.start <= span.start);
        let is_behind = at.checked_sub(1).is_none_or(|i| self.edits[i].span.end <= span.start);
        let is_before = self.edits.get(at).is_none_or(|next| span.end <= next.span.start);
        if is_behind && is_before && span.start <= span.end && span.end <= self.body.len() {
            self.edits.insert(at, Edit { span, text: text.into() });
        }
    }

    /// Takes over the edits of another list for the same body.
    pub fn extend(&mut self, other: BodyEdits<'a>) {
        for edit in other.edits {
            self.replace(edit.span, edit.text);
        }
    }

    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Bytes that are put in.
    pub fn added(&self) -> usize {
        self.edits.iter().map(|edit| edit.text.len()).sum()
    }

    /// The edited body in pieces, in order: the client's bytes are not copied.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.edits.iter().map(|edit| edit.span.end));
        let ends = self.edits.iter().map(|edit| edit.span.start).chain([self.body.len()]);
        let texts = self.edits.iter().map(|edit| edit.text.as_bytes()).chain([&b""[..]]);
        let kept = starts.zip(ends).map(|(start, end)| &self.body[start..end]);
        kept.zip(texts).flat_map(|(kept, text)| [kept, text]).filter(|piece| !piece.is_empty())
    }

    /// The edited body.
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
