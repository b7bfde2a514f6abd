//! The text that reaches the model: marked, bounded, built anew for every call.

use super::render::{Family, PATTERN_MARK, render_body};
use super::{Pattern, Source, sanitise};
use crate::analysis::text::prefix;

/// The first line of every fragment.
pub const FRAGMENT_MARK: &str = "[REASONBLOCKS]";

/// How long guidance may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentLimits {
    /// A fragment never has more characters than this.
    pub fragment_chars_max: usize,
    /// One piece of guidance is cut after this many.
    pub item_chars_max: usize,
}

impl Default for FragmentLimits {
    fn default() -> Self {
        Self { fragment_chars_max: 6_000, item_chars_max: 1_600 }
    }
}

/// A piece of guidance that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Advice written by the engine.
    Advice {
        /// Who has something to say.
        source: Source,
        /// Which monitor, where it is one.
        monitor: Option<&'static str>,
        /// What.
        text: String,
    },
    /// A pattern that was looked up.
    Pattern(Pattern),
}

impl Item {
    /// Where it comes from.
    pub fn source(&self) -> Source {
        match self {
            Self::Advice { source, .. } => *source,
            Self::Pattern(pattern) => Source::Pattern(pattern.body.tier()),
        }
    }

    /// What a log shows of it.
    pub fn preview(&self, chars_max: usize) -> String {
        match self {
            Self::Advice { text, .. } => prefix(text, chars_max).to_owned(),
            Self::Pattern(pattern) => {
                let tier = pattern.body.tier().name();
                prefix(&format!("[{tier}:{}]", sanitise(&pattern.id)), chars_max).to_owned()
            }
        }
    }
}

/// The only way text of ours gets into a model's context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment(String);

impl Fragment {
    /// Joins what is due, in the order given and in words for that model, and tells which items it shows: those that no
    /// longer fit are left out.
    ///
    /// `None` when there is nothing to say.
    pub fn build(
        items: Vec<Item>,
        model_id: &str,
        limits: FragmentLimits,
    ) -> (Option<Self>, Vec<Item>) {
        if items.is_empty() {
            return (None, items);
        }
        let family = Family::of_model(model_id);
        let mut text = FRAGMENT_MARK.to_owned();
        let mut room = limits.fragment_chars_max.saturating_sub(text.chars().count());
        let mut shown: Vec<Item> = Vec::new();
        let mut marked = false;
        for item in items {
            let body = cut(body(&item, family), limits.item_chars_max);
            let gap = if shown.is_empty() { "\n" } else { "\n\n" };
            let is_pattern = matches!(item, Item::Pattern(_));
            let block = if is_pattern && !marked {
                format!("{gap}{PATTERN_MARK}\n{body}")
            } else {
                format!("{gap}{body}")
            };
            let chars = block.chars().count();
            if body.is_empty() || chars > room {
                continue;
            }
            marked |= is_pattern;
            room -= chars;
            text += &block;
            shown.push(item);
        }
        ((!shown.is_empty()).then_some(Self(text)), shown)
    }

    /// The text, first line [`FRAGMENT_MARK`].
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn body(item: &Item, family: Family) -> String {
    match item {
        Item::Advice { text, .. } => sanitise(text),
        Item::Pattern(pattern) => render_body(&pattern.body, family),
    }
}

fn cut(text: String, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text;
    }
    format!("{} …", prefix(&text, chars_max.saturating_sub(2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guidance::PatternBody;

    fn advice(text: &str) -> Item {
        Item::Advice { source: Source::Monitor, monitor: None, text: text.to_owned() }
    }

    fn rule(id: &str, instruction: &str) -> Item {
        let body =
            PatternBody::E3 { instruction: instruction.to_owned(), meta_reasoning_prompt: None };
        Item::Pattern(Pattern { id: id.to_owned(), body })
    }

    #[test]
    fn everything_due_becomes_one_marked_text() {
        let items = vec![
            advice("look [REASONBLOCKS] again"),
            rule("r1", "Cite."),
            rule("r2", "Test. Never guess."),
        ];
        let (fragment, shown) = Fragment::build(items, "sonnet", FragmentLimits::default());
        assert_eq!(shown.len(), 3);
        insta::assert_snapshot!(fragment.expect("a fragment").as_str(), @r"
        [REASONBLOCKS]
        look [REASONBLOCKS_LITERAL] again

        [RB-MONITOR CORRECTION]
        ALWAYS: Cite.

        ALWAYS: Test.
        NEVER: Guess.
        ");
    }

    #[test]
    fn nothing_due_is_no_fragment_and_what_does_not_fit_is_left_out() {
        assert_eq!(Fragment::build(vec![], "sonnet", FragmentLimits::default()), (None, vec![]));
        let limits = FragmentLimits { fragment_chars_max: 60, item_chars_max: 30 };
        let items = vec![advice(&"a".repeat(100)), advice(&"b".repeat(100)), advice("c")];
        let (fragment, shown) = Fragment::build(items, "sonnet", limits);
        let fragment = fragment.expect("a fragment");
        assert!(fragment.as_str().chars().count() <= 60, "{}", fragment.as_str());
        assert_eq!(shown.len(), 2);
    }
}
