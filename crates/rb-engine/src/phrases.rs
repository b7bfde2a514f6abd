//! Lists of words and phrases, found in lower-case text many bytes at a time.

use aho_corasick::packed::Searcher;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind, Span};

/// Finds the words of a list in lower-case text. Where no word begins another, it finds every occurrence.
pub(crate) enum Finder {
    /// By vector instructions: many bytes at a time.
    Packed(Box<Searcher>),
    /// Byte by byte, for processors without them.
    Automaton(Box<AhoCorasick>),
}

impl Finder {
    /// `None` cannot happen for short lists; readers then see no word at all instead of a panic.
    pub(crate) fn new<'w>(words: impl Iterator<Item = &'w &'w str> + Clone) -> Option<Self> {
        match Searcher::new(words.clone()) {
            Some(searcher) => Some(Self::Packed(Box::new(searcher))),
            None => Self::automaton(words),
        }
    }

    pub(crate) fn automaton<'w>(words: impl Iterator<Item = &'w &'w str>) -> Option<Self> {
        let mut builder = AhoCorasick::builder();
        builder.kind(Some(AhoCorasickKind::DFA)).match_kind(MatchKind::LeftmostFirst);
        Some(Self::Automaton(Box::new(builder.build(words).ok()?)))
    }

    /// The first word that begins at `from` or later.
    pub(crate) fn find(&self, text: &str, from: usize) -> Option<Match> {
        match self {
            Self::Packed(searcher) => searcher.find_in(text, Span { start: from, end: text.len() }),
            Self::Automaton(automaton) => automaton.find(Input::new(text).range(from..)),
        }
    }

    /// Every place where a word begins.
    pub(crate) fn all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Match> + 't {
        let mut from = 0;
        std::iter::from_fn(move || {
            let hit = self.find(text, from)?;
            from = hit.start() + 1;
            Some(hit)
        })
    }
}

/// A list of phrases of which it only matters whether one is there.
pub(crate) struct Phrases(Option<Finder>);

impl Phrases {
    pub(crate) fn of(list: &[&str]) -> Self {
        Self(Finder::new(list.iter()))
    }

    /// Whether a lower-case text holds one of them, inside words too.
    pub(crate) fn any_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|finder| finder.find(text, 0).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_anywhere_and_nowhere_else() {
        let phrases = Phrases::of(&["oh", "no wait", "wait"]);
        let long = format!("{}no wait{}", "x ".repeat(200), " y".repeat(200));
        let cases = [
            ("", false),
            ("o", false),
            ("oh", true),
            ("cohort", true),
            ("i await", true),
            ("wai t", false),
            (long.as_str(), true),
            (&long.replace("no wait", "no way"), false),
        ];
        for (text, expected) in cases {
            assert_eq!(phrases.any_in(text), expected, "{text:?}");
        }
    }
}
