//! Text into words: the preparation the packed vectors were trained with.
//!
//! In this order: a border between a small letter or digit and a capital splits (`parseJson` is
//! two words, `HTTPServer` is one), an underscore is a space, letters become small, accents fall
//! off, and what remains is runs of letters and digits or single marks of punctuation. Nothing is
//! allocated; ASCII takes the short way.

use std::ops::ControlFlow;

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

use crate::piece_hash::{PieceHash, Position};

/// Longer words are dropped: they are hashes, base64 and the like, and would only add noise.
pub(crate) const WORD_CHARS_MAX: usize = 100;

/// Longest encoding of the longest word.
const WORD_BYTES_MAX: usize = WORD_CHARS_MAX * 4;

/// Calls `take` with each prepared word, until the text or the patience of `take` ends.
pub(crate) fn each_word(text: &str, take: impl FnMut(&Word) -> ControlFlow<()>) {
    let mut scan = Scan { take, word: Word::EMPTY, capital_splits: false };
    for c in text.chars() {
        let flow = if c.is_ascii() { scan.ascii(c) } else { scan.beyond_ascii(c) };
        if flow.is_break() {
            return;
        }
    }
    // Whether the taker wants more no longer matters: there is no more.
    let _ = scan.end_word();
}

/// The word being read.
pub(crate) struct Word {
    bytes: [u8; WORD_BYTES_MAX],
    len: usize,
    chars: usize,
    /// Made while reading, because most words are one piece.
    hash: PieceHash,
}

impl Word {
    const EMPTY: Self = Self {
        bytes: [0; WORD_BYTES_MAX],
        len: 0,
        chars: 0,
        hash: PieceHash::new(Position::Opening),
    };

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The hash of the word as one piece.
    pub(crate) fn hash(&self) -> PieceHash {
        self.hash
    }

    fn push(&mut self, c: char) {
        self.chars += 1;
        if self.chars <= WORD_CHARS_MAX {
            let added = c.encode_utf8(&mut self.bytes[self.len..]).as_bytes();
            self.hash = added.iter().fold(self.hash, |hash, byte| hash.with(*byte));
            self.len += added.len();
        }
    }

    fn push_ascii(&mut self, byte: u8) {
        self.chars += 1;
        if self.chars <= WORD_CHARS_MAX {
            self.bytes[self.len] = byte;
            self.len += 1;
            self.hash = self.hash.with(byte);
        }
    }

    fn clear(&mut self) {
        (self.len, self.chars, self.hash) = (0, 0, Self::EMPTY.hash);
    }
}

struct Scan<F> {
    take: F,
    word: Word,
    /// The character before was a small letter or a digit, so a capital here opens a new word.
    capital_splits: bool,
}

impl<F: FnMut(&Word) -> ControlFlow<()>> Scan<F> {
    #[inline]
    fn ascii(&mut self, c: char) -> ControlFlow<()> {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            self.word.push_ascii(c as u8);
            self.capital_splits = true;
            ControlFlow::Continue(())
        } else if c.is_ascii_uppercase() {
            if self.capital_splits {
                self.end_word()?;
            }
            self.word.push_ascii(c.to_ascii_lowercase() as u8);
            self.capital_splits = false;
            ControlFlow::Continue(())
        } else {
            self.end_word()?;
            if c.is_ascii_punctuation() && c != '_' {
                self.word.push_ascii(c as u8);
                self.end_word()?;
            }
            ControlFlow::Continue(())
        }
    }

    fn beyond_ascii(&mut self, c: char) -> ControlFlow<()> {
        if is_accent(c) {
            return ControlFlow::Continue(());
        }
        if !c.is_alphanumeric() {
            self.end_word()?;
            return if c.is_whitespace() { ControlFlow::Continue(()) } else { self.mark(c) };
        }
        if c.is_uppercase() && self.capital_splits {
            self.end_word()?;
        }
        for small in c.to_lowercase() {
            decompose_canonical(small, |part| {
                if !is_accent(part) {
                    self.word.push(part);
                }
            });
        }
        self.capital_splits = c.is_lowercase() || c.is_numeric();
        ControlFlow::Continue(())
    }

    /// A mark beyond ASCII. Some decompose into an ASCII mark and an accent (`≠` into `=`).
    fn mark(&mut self, c: char) -> ControlFlow<()> {
        decompose_canonical(c, |part| {
            if !is_accent(part) {
                self.word.push(part);
            }
        });
        self.end_word()
    }

    fn end_word(&mut self) -> ControlFlow<()> {
        self.capital_splits = false;
        let flow = match self.word.chars {
            1..=WORD_CHARS_MAX => (self.take)(&self.word),
            _ => ControlFlow::Continue(()),
        };
        self.word.clear();
        flow
    }
}

/// Non-spacing marks fall off. Spacing ones stay: in Indic scripts they are vowels.
fn is_accent(c: char) -> bool {
    !c.is_ascii() && c.general_category() == GeneralCategory::NonspacingMark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        each_word(text, |word| {
            words.push(String::from_utf8(word.bytes().to_vec()).expect("a word is text"));
            ControlFlow::Continue(())
        });
        assert_eq!(words.join(" "), expected, "from {text:?}");
    }

    #[test]
    fn names_of_programs_fall_apart_into_words() {
        check("parseJsonFile", "parse json file");
        check("HTTPServer v2Beta", "httpserver v2 beta");
        check("snake_case__name", "snake case name");
        check("MAX_RETRIES=3", "max retries = 3");
        check("a.b->c()", "a . b - > c ( )");
    }

    #[test]
    fn accents_fall_off_however_they_were_typed() {
        check("Café déjàVu", "cafe deja vu");
        check("Cafe\u{301} de\u{301}ja\u{300}Vu", "cafe deja vu");
        check("\u{130}stanbul", "istanbul");
    }

    #[test]
    fn marks_stand_alone() {
        check("wait… “why”?", "wait … “ why ” ?");
        check("a\u{2260}b", "a = b");
        check("tab\tnew\nline\u{a0}end\0", "tab new line end");
    }

    #[test]
    fn a_word_over_the_limit_is_dropped_and_its_neighbours_stay() {
        let long = "a".repeat(WORD_CHARS_MAX + 1);
        check(&format!("left {long} right"), "left right");
        let fits = "b".repeat(WORD_CHARS_MAX);
        check(&fits, &fits);
        let wide = "\u{1d7d8}".repeat(WORD_CHARS_MAX);
        check(&wide, &wide);
    }

    #[test]
    fn the_taker_can_stop_the_scan() {
        let mut seen = 0;
        each_word("one two three", |_| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(seen, 2);
    }
}
