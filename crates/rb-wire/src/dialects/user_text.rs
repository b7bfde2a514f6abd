//! Removal of harness text from user messages.
//!
//! Harnesses add reminders, the working directory and instructions from files to user messages. Monitors reset on user
//! input and must not reset on these, or on injected guidance.

use rb_engine::guidance::fragment::FRAGMENT_MARK;

/// Tags around harness text; user text may follow.
const TAGS: [&str; 14] = [
    "system-reminder",
    "environment_context",
    "environment_details",
    "user_instructions",
    "permissions instructions",
    "collaboration_mode",
    "turn_aborted",
    "local-command-caveat",
    "local-command-stdout",
    "command-message",
    "command-name",
    "command-args",
    "task-notification",
    "INSTRUCTIONS",
];

/// Prefixes of texts that are entirely from a harness.
const OPENINGS: [&str; 5] = [
    FRAGMENT_MARK,
    "# AGENTS.md instructions",
    "[Request interrupted by user",
    "This is the Qwen Code. We are setting up the context",
    "This is the Gemini CLI. We are setting up the context",
];

/// Heading of editor context, and the heading of the user text after it.
const SURROUNDINGS: (&str, &str) = ("# Context from my IDE setup:", "## My request for Codex:");

/// Returns the user text without harness text before and after it; may be empty.
pub(super) fn strip_harness_text(text: &str) -> &str {
    let mut rest = text.trim();
    'passing: loop {
        if OPENINGS.iter().any(|opening| rest.starts_with(opening)) {
            return "";
        }
        for tag in TAGS {
            let opened = rest.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag));
            let Some(inside) = opened.and_then(|rest| rest.strip_prefix('>')) else { continue };
            let end = format!("</{tag}>");
            let Some(at) = inside.find(&end) else { return "" };
            rest = inside[at + end.len()..].trim_start();
            continue 'passing;
        }
        if rest.starts_with(SURROUNDINGS.0) {
            let (_, words) = rest.split_once(SURROUNDINGS.1).unwrap_or_default();
            return words.trim_start();
        }
        return strip_trailing_reminder(rest);
    }
}

/// Removes a reminder at the end of a user text or a tool result.
pub(super) fn strip_trailing_reminder(text: &str) -> &str {
    let (open, close) = ("<system-reminder>", "</system-reminder>");
    match (text.trim_end().ends_with(close), text.rfind(open)) {
        (true, Some(at)) => text[..at].trim_end(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_persons_words_are_left() {
        let cases = [
            ("  fix the bug\n", "fix the bug"),
            ("<system-reminder>\nbe brief\n</system-reminder>", ""),
            (
                "<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\nhi",
                "hi",
            ),
            ("hi\n<system-reminder>a</system-reminder>", "hi"),
            ("<command-name>/compact</command-name>\n<command-args></command-args>", ""),
            ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>", ""),
            ("<environment_context>cut off", ""),
            ("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x</INSTRUCTIONS>", ""),
            ("[REASONBLOCKS]\nThe run monitor …", ""),
            (
                "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nfix it\n",
                "fix it",
            ),
            ("# Context from my IDE setup:\n\n## Open tabs:\n- a", ""),
            ("<b>bold</b> words of mine", "<b>bold</b> words of mine"),
            ("why does <system-reminder> show up?", "why does <system-reminder> show up?"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(strip_harness_text(text), expected, "{text}");
        }
    }
}
