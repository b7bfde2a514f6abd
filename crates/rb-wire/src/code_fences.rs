//! Fenced code blocks in text.

/// A code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fenced<'a> {
    /// Info string of the opening fence; may be empty.
    pub(crate) language: &'a str,
    pub(crate) code: &'a str,
    /// Text before the fence.
    pub(crate) before: &'a str,
}

/// Returns the first closed code block.
pub(crate) fn fenced(text: &str) -> Option<Fenced<'_>> {
    all_fenced(text).next()
}

/// Returns all closed code blocks.
pub(crate) fn all_fenced(text: &str) -> impl Iterator<Item = Fenced<'_>> {
    let mut at = 0;
    let mut open: Option<(usize, usize, &str)> = None;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let mark = line.trim();
        let language = mark.strip_prefix("```")?;
        match open {
            Some((before, begin, language)) if mark == "```" => {
                open = None;
                let code = text[begin..start].trim_end_matches(['\r', '\n']);
                Some(Fenced { language, code, before: text[..before].trim_end() })
            }
            Some(_) => None,
            None => {
                open = Some((start, at, language.trim()));
                None
            }
        }
    })
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
        let languages: Vec<&str> =
            all_fenced("```a\n```\n```b\n```").map(|it| it.language).collect();
        assert_eq!(languages, ["a", "b"]);
    }
}
