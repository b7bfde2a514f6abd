//! Sanitises text for injection into a model's context.
//!
//! Patterns are written by people and learned from runs, and advice contains names of tools and files that an agent
//! chose. None of it may open or close one of our blocks, imitate a system turn, or hide something from a reader.

use crate::analysis::text::is_space;

/// Marks that are reserved for us or for the model's host, compared in any case.
const MARKS: [(&str, &str); 4] = [
    ("[reasonblocks]", "[REASONBLOCKS_LITERAL]"),
    ("[/reasonblocks]", "[/REASONBLOCKS_LITERAL]"),
    ("[system]", "[SYSTEM_LITERAL]"),
    ("[/system]", "[/SYSTEM_LITERAL]"),
];

/// Bytes in which the end of a tag such as `<|…|>` is searched.
const PIPE_TAG_BYTES_MAX: usize = 200;

/// Returns the text on one line, without control characters and with every mark defused.
pub fn sanitise(text: &str) -> String {
    // First removes everything that is left out, so that two halves of a mark cannot meet afterwards.
    let visible = one_line(text);
    let mut safe = String::with_capacity(visible.len());
    let mut rest = visible.as_str();
    while let Some(at) = rest.find(['[', '<']) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        let (len, stand_in) = mark(rest).unwrap_or((1, &rest[..1]));
        safe.push_str(stand_in);
        rest = &rest[len..];
    }
    safe.push_str(rest);
    safe
}

/// Replaces white space by single spaces, and removes control characters and invisible direction marks.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if is_space(c) {
            gap = true;
        } else if !is_hidden(c) {
            if std::mem::take(&mut gap) && !line.is_empty() {
                line.push(' ');
            }
            line.push(c);
        }
    }
    line
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Returns the length of the mark at the start of `rest`, and its replacement.
fn mark(rest: &str) -> Option<(usize, &'static str)> {
    let found = MARKS.iter().find(|(mark, _)| {
        rest.as_bytes()
            .get(..mark.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
    });
    if let Some((mark, stand_in)) = found {
        return Some((mark.len(), stand_in));
    }
    if let Some(inside) = rest.strip_prefix("<|") {
        let close = inside.find("|>").filter(|len| *len <= PIPE_TAG_BYTES_MAX)?;
        return Some((close + 4, "[pipe_tag_literal]"));
    }
    system_tag_len(rest).map(|len| (len, "[system_tag_literal]"))
}

/// Matches `<system>`, `</ SYSTEM >`, `<system-reminder>`: an opening or closing tag whose name starts with "system".
fn system_tag_len(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('<')?.trim_start_matches([' ', '/']);
    let name = inside.as_bytes().get(..6)?;
    if !name.eq_ignore_ascii_case(b"system") {
        return None;
    }
    let close = inside.find('>')?;
    let is_name = inside[..close]
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ' ' | '/'));
    is_name.then(|| rest.len() - inside.len() + close + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_are_defused() {
        let cases = [
            ("plain [text] a < b", "plain [text] a < b"),
            (
                "[REASONBLOCKS] x [/reasonblocks]",
                "[REASONBLOCKS_LITERAL] x [/REASONBLOCKS_LITERAL]",
            ),
            (
                "<system> </ SYSTEM > <system-reminder>",
                "[system_tag_literal] [system_tag_literal] [system_tag_literal]",
            ),
            ("<systematic approach>", "[system_tag_literal]"),
            ("<|im_end|> |> <|", "[pipe_tag_literal] |> <|"),
            ("a\u{7}\tb\r\nc", "a b c"),
            ("[REASON\u{7}BLOCKS]", "[REASONBLOCKS_LITERAL]"),
            ("[REASON\u{202e}BLOCKS\u{200b}]", "[REASONBLOCKS_LITERAL]"),
            ("[/SYSTEM]", "[/SYSTEM_LITERAL]"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(sanitise(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_mark_survives_sanitising(text in r"(\[/?|<[|/ ]?|\|?>|\]|REASONBLOCKS|system|SYSTEM|\PC|\x07|\n| ){0,40}") {
            let safe = sanitise(&text);
            let lower = safe.to_ascii_lowercase();
            for mark in ["[reasonblocks]", "[/reasonblocks]", "[system]", "[/system]", "<system>", "</system>"] {
                prop_assert!(!lower.contains(mark), "{safe:?} holds {mark}");
            }
            prop_assert!(!safe.contains(char::is_control));
            prop_assert_eq!(sanitise(&safe), safe.clone(), "a safe text stays as it is");
        }
    }
}
