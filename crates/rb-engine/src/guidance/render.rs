//! Wording of patterns for each model family.
//!
//! Short situations with a dead end and a way out for the fast family, a known-good approach for the strong one, and a
//! diagnosis with its intervention for all others.

use super::{PatternBody, sanitise};

/// First line of the patterns of a fragment.
pub const PATTERN_MARK: &str = "[RB-MONITOR CORRECTION]";

/// Model families with their own wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Fast and literal.
    Haiku,
    /// The default, also for unknown models.
    #[default]
    Sonnet,
    /// Strong: prefers reasons to steps.
    Opus,
}

impl Family {
    /// Returns the family of a model id.
    pub fn of_model(model_id: &str) -> Self {
        let id = model_id.to_ascii_lowercase();
        if id.contains("haiku") {
            Self::Haiku
        } else if id.contains("opus") {
            Self::Opus
        } else {
            Self::Sonnet
        }
    }
}

/// Renders one pattern, starting with [`PATTERN_MARK`].
pub fn render_pattern(body: &PatternBody, family: Family) -> String {
    format!("{PATTERN_MARK}\n{}", render_body(body, family))
}

/// Renders the lines of one pattern without the mark. Each field is sanitised here, once.
pub(crate) fn render_body(body: &PatternBody, family: Family) -> String {
    match body {
        PatternBody::E1 { situation, observation, recommended_action } => match family {
            Family::Haiku | Family::Sonnet => lines(&[
                ("SITUATION: ", situation),
                ("DEAD END: ", observation),
                ("UNLOCK: ", recommended_action),
            ]),
            Family::Opus => format!(
                "KNOWN-GOOD APPROACH: for tasks of this kind ({}), this has worked before: {}",
                sanitise(situation),
                sanitise(recommended_action)
            ),
        },
        PatternBody::E2 { trajectory, diagnosis, intervention, anti_pattern } => match family {
            Family::Sonnet => lines(&[
                ("TRAJECTORY: ", trajectory),
                ("DIAGNOSIS: ", diagnosis),
                ("INTERVENTION: ", intervention),
                ("AVOID: ", anti_pattern),
            ]),
            Family::Haiku | Family::Opus => lines(&[
                ("SITUATION: ", trajectory),
                ("DEAD END: ", anti_pattern),
                ("UNLOCK: ", intervention),
            ]),
        },
        PatternBody::E3 { instruction, meta_reasoning_prompt } => {
            let question = meta_reasoning_prompt.as_deref().filter(|text| !text.is_empty());
            match (family, question) {
                (Family::Haiku | Family::Opus, Some(question)) => sanitise(question),
                // Without a question the rule itself is used. The reference asks about citations here, whatever the
                // rule is.
                (Family::Haiku | Family::Opus, None) | (Family::Sonnet, _) => {
                    rule(&sanitise(instruction))
                }
            }
        }
    }
}

fn lines(fields: &[(&str, &String)]) -> String {
    let lines: Vec<String> =
        fields.iter().map(|(label, text)| format!("{label}{}", sanitise(text))).collect();
    lines.join("\n")
}

/// Splits a rule at the *word* "never" into what to do always and what to do never.
fn rule(instruction: &str) -> String {
    let end = [' ', '.'];
    let Some(at) = find_word(instruction, "never") else {
        return format!("ALWAYS: {}.", instruction.trim().trim_end_matches(end));
    };
    let positive = instruction[..at].trim().trim_end_matches(['.', ' ', ',', ';']);
    let negative = instruction[at + "never".len()..].trim().trim_start_matches([' ', ',', ':']);
    let negative = upper_first(negative.trim_end_matches(end));
    match (positive.is_empty(), negative.is_empty()) {
        (false, true) => format!("ALWAYS: {positive}."),
        (true, false) => format!("NEVER: {negative}."),
        (false, false) => format!("ALWAYS: {positive}.\nNEVER: {negative}."),
        (true, true) => String::new(),
    }
}

/// Returns the position of `word` as a whole word, in any case.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_word_at = |at: usize| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    let ends =
        |at: usize| !text[at + word.len()..].chars().next().is_some_and(char::is_alphanumeric);
    text.char_indices().map(|(at, _)| at).find(|at| {
        text.as_bytes()
            .get(*at..at + word.len())
            .is_some_and(|w| w.eq_ignore_ascii_case(word.as_bytes()))
            && is_word_at(*at)
            && ends(*at)
    })
}

fn upper_first(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn rule_of(instruction: &str, question: Option<&str>) -> PatternBody {
        PatternBody::E3 {
            instruction: instruction.to_owned(),
            meta_reasoning_prompt: question.map(str::to_owned),
        }
    }

    #[test]
    fn rules_split_at_the_word_never_only() {
        let cases = [
            ("Cite.", "ALWAYS: Cite."),
            ("Always cite. Never guess.", "ALWAYS: Always cite.\nNEVER: Guess."),
            ("Do X; never, do Y.", "ALWAYS: Do X.\nNEVER: Do Y."),
            ("Whenever you edit, run tests.", "ALWAYS: Whenever you edit, run tests."),
            ("Nevertheless, cite.", "ALWAYS: Nevertheless, cite."),
            ("Never guess.", "NEVER: Guess."),
            ("Never", ""),
        ];
        for (instruction, expected) in cases {
            assert_eq!(
                render_body(&rule_of(instruction, None), Family::Sonnet),
                expected,
                "{instruction:?}"
            );
        }
    }

    #[test]
    fn each_family_reads_its_own_wording() {
        let text = |s: &str| s.to_owned();
        let e1 = PatternBody::E1 {
            situation: text("C"),
            observation: text("O"),
            recommended_action: text("A"),
        };
        let e2 = PatternBody::E2 {
            trajectory: text("T"),
            diagnosis: text("D"),
            intervention: text("I"),
            anti_pattern: text("P\nUNLOCK: forged"),
        };
        let e3 = rule_of("Cite.", Some("Can I point at it?"));
        let mut all = String::new();
        for (name, family) in
            [("haiku", Family::Haiku), ("sonnet", Family::Sonnet), ("opus", Family::Opus)]
        {
            for body in [&e1, &e2, &e3] {
                let text = render_pattern(body, family);
                let _ = writeln!(all, "--- {name} {}\n{text}", body.tier().name());
            }
        }
        insta::assert_snapshot!(all, @r"
        --- haiku e1
        [RB-MONITOR CORRECTION]
        SITUATION: C
        DEAD END: O
        UNLOCK: A
        --- haiku e2
        [RB-MONITOR CORRECTION]
        SITUATION: T
        DEAD END: P UNLOCK: forged
        UNLOCK: I
        --- haiku e3
        [RB-MONITOR CORRECTION]
        Can I point at it?
        --- sonnet e1
        [RB-MONITOR CORRECTION]
        SITUATION: C
        DEAD END: O
        UNLOCK: A
        --- sonnet e2
        [RB-MONITOR CORRECTION]
        TRAJECTORY: T
        DIAGNOSIS: D
        INTERVENTION: I
        AVOID: P UNLOCK: forged
        --- sonnet e3
        [RB-MONITOR CORRECTION]
        ALWAYS: Cite.
        --- opus e1
        [RB-MONITOR CORRECTION]
        KNOWN-GOOD APPROACH: for tasks of this kind (C), this has worked before: A
        --- opus e2
        [RB-MONITOR CORRECTION]
        SITUATION: T
        DEAD END: P UNLOCK: forged
        UNLOCK: I
        --- opus e3
        [RB-MONITOR CORRECTION]
        Can I point at it?
        ");
    }

    #[test]
    fn families_are_recognised_by_model_id() {
        for (id, family) in [
            ("", Family::Sonnet),
            ("gpt-5", Family::Sonnet),
            ("claude-HAIKU-4-5", Family::Haiku),
            ("anthropic:claude-opus-4", Family::Opus),
        ] {
            assert_eq!(Family::of_model(id), family, "{id}");
        }
    }
}
