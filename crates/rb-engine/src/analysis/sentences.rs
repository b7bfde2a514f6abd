//! Sentences and words of a thought, split once per step.

use crate::analysis::text::{is_word, prefix};

/// Bytes at the end of a thought that are searched for claims, because conclusions are at the end.
const READ_BYTES: usize = 4_000;
/// Characters of a sentence that are read.
const SENTENCE_CHARS_MAX: usize = 400;
/// Maximum number of words of a sentence that states something.
pub(crate) const SENTENCE_WORDS_MAX: usize = 45;

/// The sentences of a thought without questions and quotations: one per line, in lower case.
pub(crate) struct Sentences {
    text: String,
    /// Quotations may have been removed, so that words are adjacent that were not.
    is_cut: bool,
}

impl Sentences {
    pub(crate) fn of(thought: &str) -> Self {
        let start = thought.ceil_char_boundary(thought.len().saturating_sub(READ_BYTES));
        let mut text = String::with_capacity(thought.len() - start);
        let mut is_cut = false;
        for sentence in
            split_sentences(&thought[start..]).filter(|sentence| !sentence.ends_with('?'))
        {
            let short = prefix(sentence, SENTENCE_CHARS_MAX);
            let begun = text.len();
            if short.is_ascii() && !short.contains('"') {
                text.push_str(short);
                text[begun..].make_ascii_lowercase();
            } else {
                is_cut = true;
                text.push_str(&unquoted(short.to_lowercase()));
            }
            text.push('\n');
        }
        Self { text, is_cut }
    }

    /// All sentences, one per line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Reports whether words may be adjacent that are not in the thought.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.text.split_terminator('\n')
    }

    /// Reports each sentence of at most `words_max` words, with its words.
    pub(crate) fn each<'s>(&'s self, words_max: usize, mut found: impl FnMut(&'s str, &[&'s str])) {
        let mut its_words = Vec::with_capacity(words_max + 1);
        for sentence in self.iter() {
            its_words.clear();
            its_words.extend(words(sentence).take(words_max + 1));
            if (1..=words_max).contains(&its_words.len()) {
                found(sentence, &its_words);
            }
        }
    }
}

/// Splits a text into sentences. A dot ends a sentence only before a space, so `settings.yaml` is not split.
pub(crate) fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (sentence, after) = rest.split_at(sentence_len(rest));
            rest = after;
            let sentence = sentence.trim();
            if !sentence.is_empty() {
                return Some(sentence);
            }
        }
        None
    })
}

/// Returns the length of the first sentence including its end mark. All end marks are ASCII.
fn sentence_len(text: &str) -> usize {
    let is_mark = |byte: &u8| matches!(byte, b'\n' | b';' | b'.' | b'!' | b'?');
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(ahead) = bytes[from..].iter().position(is_mark) {
        let end = from + ahead + 1;
        let always = matches!(bytes[end - 1], b'\n' | b';');
        if always || !text[end..].starts_with(|next: char| !next.is_whitespace()) {
            return end;
        }
        from = end;
    }
    text.len()
}

/// Removes quotations between double quotes.
fn unquoted(sentence: String) -> String {
    if !sentence.contains(['"', '“', '”']) {
        return sentence;
    }
    sentence.split(['"', '“', '”']).step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the words of a text; an apostrophe is part of its word.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = run_end(text, at, false);
        at = run_end(text, start, true);
        (start < at).then(|| &text[start..at])
    })
}

/// Returns the end of the run of characters inside (or outside) words that starts at `from`.
fn run_end(text: &str, from: usize, inside: bool) -> usize {
    let mut at = from;
    while let Some(byte) = text.as_bytes().get(at) {
        let (is_inside, len) = if byte.is_ascii() {
            (byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'\''), 1)
        } else {
            text[at..].chars().next().map_or((false, 1), |c| (is_word(c), c.len_utf8()))
        };
        if is_inside != inside {
            break;
        }
        at += len;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_is_split_into_sentences() {
        let cases = [
            ("", ""),
            ("One. Two!  Three", "one.\ntwo!\nthree\n"),
            ("In settings.yaml; and here\nA question? Yes.", "in settings.yaml;\nand here\nyes.\n"),
            ("He said \"All is well\" to me.", "he said   to me.\n"),
            ("ÄRGER mit “dem Rest”…", "ärger mit  …\n"),
            (". . .", ".\n.\n.\n"),
        ];
        for (thought, expected) in cases {
            assert_eq!(Sentences::of(thought).text(), expected, "{thought:?}");
        }
    }

    #[test]
    fn words_are_runs_of_letters_digits_and_apostrophes() {
        let cases: [(&str, &[&str]); 5] = [
            ("", &[]),
            (" -- ", &[]),
            ("it's a_b, x2.", &["it's", "a_b", "x2"]),
            ("größe—5字", &["größe", "5字"]),
            ("end", &["end"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn long_sentences_are_skipped() {
        let sentences = Sentences::of("One two three four. One two.");
        let mut found = Vec::new();
        sentences.each(3, |sentence, words| found.push((sentence, words.len())));
        assert_eq!(found, [("one two.", 2)]);
    }
}
