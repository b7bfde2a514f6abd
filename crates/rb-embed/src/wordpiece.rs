//! WordPiece tokeniser: splits each word greedily into the longest vocabulary entries. A word that cannot be
//! split completely is dropped.

use std::ops::ControlFlow;

use crate::pretokenizer::{Word, each_word};
use crate::vocab_hash::{Position, VocabHash};
use crate::vocabulary::row_of;

/// Maximum number of pieces per text; the rest of the text is ignored.
pub const MAX_PIECES: usize = 512;

/// Maximum number of bytes read per text, which also bounds texts without words.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Length of the longest vocabulary entry (checked by a test).
const MAX_PIECE_BYTES: usize = 18;

/// Vocabulary rows of a text's pieces, in order.
pub(crate) struct Pieces {
    rows: [u16; MAX_PIECES],
    len: usize,
}

impl Pieces {
    pub(crate) fn of(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let mut pieces = Self { rows: [0; MAX_PIECES], len: 0 };
        each_word(text, |word| pieces.push_word(word));
        pieces
    }

    pub(crate) fn rows(&self) -> &[u16] {
        &self.rows[..self.len]
    }

    fn push_word(&mut self, word: &Word) -> ControlFlow<()> {
        match row_of(word.hash()) {
            Some(row) => self.push(row),
            None => self.push_split_word(word.bytes()),
        }
    }

    fn push(&mut self, row: u16) -> ControlFlow<()> {
        let Some(slot) = self.rows.get_mut(self.len) else { return ControlFlow::Break(()) };
        *slot = row;
        self.len += 1;
        ControlFlow::Continue(())
    }

    fn push_split_word(&mut self, word: &[u8]) -> ControlFlow<()> {
        let len_before = self.len;
        let mut rest = word;
        let mut position = Position::Start;
        while !rest.is_empty() {
            let Some((row, piece_len)) = longest_piece(position, rest) else {
                self.len = len_before;
                return ControlFlow::Continue(());
            };
            if self.push(row).is_break() {
                self.len = len_before;
                return ControlFlow::Break(());
            }
            rest = &rest[piece_len..];
            position = Position::Continuation;
        }
        ControlFlow::Continue(())
    }
}

/// Returns the row and the byte length of the longest entry that `rest` starts with.
///
/// Entries consist of whole characters, so a match always ends at a character boundary.
fn longest_piece(position: Position, rest: &[u8]) -> Option<(u16, usize)> {
    let mut hashes = [VocabHash::new(position); MAX_PIECE_BYTES];
    let mut hash = VocabHash::new(position);
    let longest = rest.len().min(MAX_PIECE_BYTES);
    for (slot, byte) in hashes.iter_mut().zip(&rest[..longest]) {
        hash = hash.with(*byte);
        *slot = hash;
    }
    (1..=longest).rev().find_map(|len| Some((row_of(hashes[len - 1])?, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> impl Iterator<Item = &'static str> {
        include_str!("../assets/vocab.txt").lines()
    }

    fn check(text: &str, expected: &str) {
        let vocabulary: Vec<&str> = lines().collect();
        let pieces = Pieces::of(text);
        let shown: Vec<&str> =
            pieces.rows().iter().map(|row| vocabulary[usize::from(*row)]).collect();
        assert_eq!(shown.join(" "), expected, "from {text:?}");
    }

    #[test]
    fn every_vocabulary_entry_is_found() {
        for (row, line) in lines().enumerate() {
            let (position, text) = match line.strip_prefix("##") {
                Some(text) if !text.is_empty() => (Position::Continuation, text),
                _ => (Position::Start, line),
            };
            assert!(text.len() <= MAX_PIECE_BYTES, "{line} exceeds MAX_PIECE_BYTES");
            let hash = text.bytes().fold(VocabHash::new(position), VocabHash::with);
            assert_eq!(row_of(hash).map(usize::from), Some(row), "{line}");
        }
    }

    #[test]
    fn words_are_split_into_the_longest_pieces() {
        check("session timeout", "session time ##out");
        check("retryWithBackoff()", "re ##try with back ##off ( )");
        check("unaffable", "una ##ffa ##ble");
        check("Naïve café", "naive cafe");
    }

    #[test]
    fn a_word_that_cannot_be_split_is_dropped() {
        check("left a\u{1f600}\u{1f601} right", "left a right");
        check("left \u{10a0}\u{2d00} right", "left right");
        check("[CLS]", "[ cl ##s ]");
    }

    #[test]
    fn a_long_text_is_truncated_at_the_limit() {
        assert_eq!(Pieces::of(&"word ".repeat(2 * MAX_PIECES)).rows().len(), MAX_PIECES);
        let mut late = " ".repeat(MAX_TEXT_BYTES);
        late.push_str("word");
        assert!(Pieces::of(&late).rows().is_empty());
    }
}
