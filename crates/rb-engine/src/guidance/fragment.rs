//! The text that is injected into a model call: marked, bounded, rebuilt for every call.

use super::render::{Family, PATTERN_MARK, render_body};
use super::{Pattern, Source, sanitise};
use crate::analysis::text::prefix;

/// First line of every fragment.
pub const FRAGMENT_MARK: &str = "[REASONBLOCKS]";

/// Maximum lengths of guidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Maximum number of characters of a fragment.
    pub fragment_chars_max: usize,
    /// Maximum number of characters of one item.
    pub item_chars_max: usize,
}

impl Default for FragmentLimits {
    fn default() -> Self {
        Self { fragment_chars_max: 6_000, item_chars_max: 1_600 }
    }
}

/// One item of guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Advice written by the engine.
    Advice {
        /// Source of the advice.
        source: Source,
        /// Id of the monitor, if there is one.
        monitor: Option<&'static str>,
        /// The text.
        text: String,
    },
    /// A retrieved pattern.
    Pattern(Pattern),
}

impl Item {
    /// Returns the source of the item.
    pub fn source(&self) -> Source {
        match self {
            Self::Advice { source, .. } => *source,
            Self::Pattern(pattern) => Source::Pattern(pattern.body.tier()),
        }
    }

    /// Returns a short form for logs.
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

/// The only form in which the engine adds text to a model's context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment(String);

impl Fragment {
    /// Joins the items in the given order, worded for the model, and returns those that are shown; items that do not
    /// fit are left out.
    ///
    /// Returns `None` without items.
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

    /// Returns the text, whose first line is [`FRAGMENT_MARK`].
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
    fn items_are_joined_into_one_marked_text() {
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
    fn without_items_there_is_no_fragment_and_surplus_items_are_left_out() {
        assert_eq!(Fragment::build(vec![], "sonnet", FragmentLimits::default()), (None, vec![]));
        let limits = FragmentLimits { fragment_chars_max: 60, item_chars_max: 30 };
        let items = vec![advice(&"a".repeat(100)), advice(&"b".repeat(100)), advice("c")];
        let (fragment, shown) = Fragment::build(items, "sonnet", limits);
        let fragment = fragment.expect("a fragment");
        assert!(fragment.as_str().chars().count() <= 60, "{}", fragment.as_str());
        assert_eq!(shown.len(), 2);
    }
}
