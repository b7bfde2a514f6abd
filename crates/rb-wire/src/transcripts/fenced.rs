//! Code between fences, which agents without tool calls write into their text.

/// A piece of code in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fenced<'a> {
    /// The word behind the opening fence; may be empty.
    pub(super) language: &'a str,
    pub(super) code: &'a str,
    /// What stands before the fence.
    pub(super) before: &'a str,
}

/// The first piece of code that is closed.
pub(super) fn fenced(text: &str) -> Option<Fenced<'_>> {
    let mut at = 0;
    let mut open: Option<(usize, usize, &str)> = None;
    for line in text.split_inclusive('\n') {
        let mark = line.trim();
        if let Some(language) = mark.strip_prefix("```") {
            match open {
                Some((start, begin, language)) if mark == "```" => {
                    let code = text[begin..at].trim_end_matches(['\r', '\n']);
                    return Some(Fenced { language, code, before: text[..start].trim_end() });
                }
                Some(_) => {}
                None => open = Some((at, at + line.len(), language.trim())),
            }
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_closed_piece_is_found() {
        for (text, expected) in [
            ("none", None),
            ("```bash\nls", None),
            (
                "I look.\n\n```bash\nls -l\ncat a\n```\nDone.",
                Some(("bash", "ls -l\ncat a", "I look.")),
            ),
            ("```\nx\n```", Some(("", "x", ""))),
            ("a\n```sh\n```\n```py\n1\n```", Some(("sh", "", "a"))),
            ("a\r\n```sh\r\nls\r\n```\r\n", Some(("sh", "ls", "a"))),
        ] {
            let found = fenced(text).map(|it| (it.language, it.code, it.before));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
