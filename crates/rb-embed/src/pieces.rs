//! Words into pieces of the vocabulary: the longest piece that fits, then the longest that
//! continues it, and so on. A word that cannot be spelled to its end is dropped whole.

use std::ops::ControlFlow;

use crate::piece_hash::{PieceHash, Position};
use crate::vocabulary::row_of;
use crate::words::{Word, each_word};

/// Pieces of one text that are looked at; the rest of a long text is not read.
pub const PIECES_MAX: usize = 512;

/// Bytes of one text that are looked at, so that a text without words is bounded too.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// No piece of the vocabulary is longer (a test looks).
const PIECE_BYTES_MAX: usize = 18;

/// The rows of a text's pieces, in order.
pub(crate) struct Pieces {
    rows: [u16; PIECES_MAX],
    len: usize,
}

impl Pieces {
    pub(crate) fn of(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        let mut pieces = Self { rows: [0; PIECES_MAX], len: 0 };
        each_word(text, |word| pieces.spell(word));
        pieces
    }

    pub(crate) fn rows(&self) -> &[u16] {
        &self.rows[..self.len]
    }

    fn spell(&mut self, word: &Word) -> ControlFlow<()> {
        match row_of(word.hash()) {
            Some(row) => self.push(row),
            None => self.spell_in_parts(word.bytes()),
        }
    }

    fn push(&mut self, row: u16) -> ControlFlow<()> {
        let Some(place) = self.rows.get_mut(self.len) else { return ControlFlow::Break(()) };
        *place = row;
        self.len += 1;
        ControlFlow::Continue(())
    }

    fn spell_in_parts(&mut self, word: &[u8]) -> ControlFlow<()> {
        let len_before = self.len;
        let mut rest = word;
        let mut position = Position::Opening;
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
            position = Position::Continuing;
        }
        ControlFlow::Continue(())
    }
}

/// The longest entry that `rest` starts with: its row and its length in bytes.
///
/// Entries are whole characters, so a match always ends where a character does.
fn longest_piece(position: Position, rest: &[u8]) -> Option<(u16, usize)> {
    let mut hashes = [PieceHash::new(position); PIECE_BYTES_MAX];
    let mut hash = PieceHash::new(position);
    let longest = rest.len().min(PIECE_BYTES_MAX);
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
    fn every_entry_is_found_at_its_own_row() {
        for (row, line) in lines().enumerate() {
            let (position, text) = match line.strip_prefix("##") {
                Some(text) if !text.is_empty() => (Position::Continuing, text),
                _ => (Position::Opening, line),
            };
            assert!(text.len() <= PIECE_BYTES_MAX, "{line} is longer than the limit");
            let hash = text.bytes().fold(PieceHash::new(position), PieceHash::with);
            assert_eq!(row_of(hash).map(usize::from), Some(row), "{line}");
        }
    }

    #[test]
    fn words_are_spelled_with_the_longest_pieces() {
        check("session timeout", "session time ##out");
        check("retryWithBackoff()", "re ##try with back ##off ( )");
        check("unaffable", "una ##ffa ##ble");
        check("Naïve café", "naive cafe");
    }

    #[test]
    fn a_word_that_cannot_be_spelled_is_dropped_whole() {
        check("left a\u{1f600}\u{1f601} right", "left a right");
        check("left \u{10a0}\u{2d00} right", "left right");
        check("[CLS]", "[ cl ##s ]");
    }

    #[test]
    fn a_long_text_is_read_up_to_the_limit() {
        assert_eq!(Pieces::of(&"word ".repeat(2 * PIECES_MAX)).rows().len(), PIECES_MAX);
        let mut late = " ".repeat(TEXT_BYTES_MAX);
        late.push_str("word");
        assert!(Pieces::of(&late).rows().is_empty());
    }
}
