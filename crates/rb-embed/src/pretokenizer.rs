//! Splits text into words with the normalisation that the static model was trained with.
//!
//! A lowercase letter or digit followed by an uppercase letter splits (`parseJson` is two words, `HTTPServer` is one),
//! an underscore counts as a space, letters are lowercased, accents are removed, and the result consists of runs of
//! letters and digits and of single punctuation marks. Nothing is allocated, and ASCII has a fast path.

use std::ops::ControlFlow;

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

use crate::vocab_hash::{Position, VocabHash};

/// Maximum length of a word. Longer ones are dropped: hashes, base64 and the like only add noise.
pub(crate) const MAX_WORD_CHARS: usize = 100;

/// UTF-8 length of the longest word.
const MAX_WORD_BYTES: usize = MAX_WORD_CHARS * 4;

/// Calls `take` with each normalised word until the text ends or `take` returns `Break`.
pub(crate) fn each_word(text: &str, take: impl FnMut(&Word) -> ControlFlow<()>) {
    let mut splitter = Splitter { take, word: Word::EMPTY, uppercase_splits: false };
    for c in text.chars() {
        let flow = if c.is_ascii() { splitter.ascii(c) } else { splitter.non_ascii(c) };
        if flow.is_break() {
            return;
        }
    }
    // The text has ended, so a `Break` makes no difference.
    let _ = splitter.end_word();
}

/// Word under construction.
pub(crate) struct Word {
    bytes: [u8; MAX_WORD_BYTES],
    len: usize,
    chars: usize,
    /// Updated with each byte, because most words are a single piece.
    hash: VocabHash,
}

impl Word {
    const EMPTY: Self = Self {
        bytes: [0; MAX_WORD_BYTES],
        len: 0,
        chars: 0,
        hash: VocabHash::new(Position::Start),
    };

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the hash of the word as a single piece.
    pub(crate) fn hash(&self) -> VocabHash {
        self.hash
    }

    fn push(&mut self, c: char) {
        self.chars += 1;
        if self.chars <= MAX_WORD_CHARS {
            let added = c.encode_utf8(&mut self.bytes[self.len..]).as_bytes();
            self.hash = added.iter().fold(self.hash, |hash, byte| hash.with(*byte));
            self.len += added.len();
        }
    }

    fn push_ascii(&mut self, byte: u8) {
        self.chars += 1;
        if self.chars <= MAX_WORD_CHARS {
            self.bytes[self.len] = byte;
            self.len += 1;
            self.hash = self.hash.with(byte);
        }
    }

    fn clear(&mut self) {
        (self.len, self.chars, self.hash) = (0, 0, Self::EMPTY.hash);
    }
}

struct Splitter<F> {
    take: F,
    word: Word,
    /// The previous character was a lowercase letter or a digit, so an uppercase letter starts a new word.
    uppercase_splits: bool,
}

impl<F: FnMut(&Word) -> ControlFlow<()>> Splitter<F> {
    #[inline]
    fn ascii(&mut self, c: char) -> ControlFlow<()> {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            self.word.push_ascii(c as u8);
            self.uppercase_splits = true;
            ControlFlow::Continue(())
        } else if c.is_ascii_uppercase() {
            if self.uppercase_splits {
                self.end_word()?;
            }
            self.word.push_ascii(c.to_ascii_lowercase() as u8);
            self.uppercase_splits = false;
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

    fn non_ascii(&mut self, c: char) -> ControlFlow<()> {
        if is_accent(c) {
            return ControlFlow::Continue(());
        }
        if !c.is_alphanumeric() {
            self.end_word()?;
            return if c.is_whitespace() { ControlFlow::Continue(()) } else { self.punctuation(c) };
        }
        if c.is_uppercase() && self.uppercase_splits {
            self.end_word()?;
        }
        for lower in c.to_lowercase() {
            decompose_canonical(lower, |part| {
                if !is_accent(part) {
                    self.word.push(part);
                }
            });
        }
        self.uppercase_splits = c.is_lowercase() || c.is_numeric();
        ControlFlow::Continue(())
    }

    /// Emits a non-ASCII punctuation mark. Some decompose into an ASCII mark and an accent (`≠` into `=`).
    fn punctuation(&mut self, c: char) -> ControlFlow<()> {
        decompose_canonical(c, |part| {
            if !is_accent(part) {
                self.word.push(part);
            }
        });
        self.end_word()
    }

    fn end_word(&mut self) -> ControlFlow<()> {
        self.uppercase_splits = false;
        let flow = match self.word.chars {
            1..=MAX_WORD_CHARS => (self.take)(&self.word),
            _ => ControlFlow::Continue(()),
        };
        self.word.clear();
        flow
    }
}

/// Returns whether the character is a non-spacing mark. Spacing marks are kept: in Indic scripts they are vowels.
fn is_accent(c: char) -> bool {
    !c.is_ascii() && c.general_category() == GeneralCategory::NonspacingMark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        each_word(text, |word| {
            words.push(String::from_utf8(word.bytes().to_vec()).expect("words are UTF-8"));
            ControlFlow::Continue(())
        });
        assert_eq!(words.join(" "), expected, "from {text:?}");
    }

    #[test]
    fn identifiers_are_split_into_words() {
        check("parseJsonFile", "parse json file");
        check("HTTPServer v2Beta", "httpserver v2 beta");
        check("snake_case__name", "snake case name");
        check("MAX_RETRIES=3", "max retries = 3");
        check("a.b->c()", "a . b - > c ( )");
    }

    #[test]
    fn composed_and_decomposed_accents_are_removed() {
        check("Café déjàVu", "cafe deja vu");
        check("Cafe\u{301} de\u{301}ja\u{300}Vu", "cafe deja vu");
        check("\u{130}stanbul", "istanbul");
    }

    #[test]
    fn punctuation_marks_are_single_words() {
        check("wait… “why”?", "wait … “ why ” ?");
        check("a\u{2260}b", "a = b");
        check("tab\tnew\nline\u{a0}end\0", "tab new line end");
    }

    #[test]
    fn a_word_over_the_limit_is_dropped() {
        let long = "a".repeat(MAX_WORD_CHARS + 1);
        check(&format!("left {long} right"), "left right");
        let fits = "b".repeat(MAX_WORD_CHARS);
        check(&fits, &fits);
        let wide = "\u{1d7d8}".repeat(MAX_WORD_CHARS);
        check(&wide, &wide);
    }

    #[test]
    fn a_break_stops_the_scan() {
        let mut seen = 0;
        each_word("one two three", |_| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(seen, 2);
    }
}
