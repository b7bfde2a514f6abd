//! Texts cut for reading.

/// Texts to be read are cut to this many characters.
const HEAD_CHARS: usize = 400;

/// The beginning of a text.
pub(crate) fn head(text: &str) -> String {
    match text.char_indices().nth(HEAD_CHARS) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
    }
}

/// An action on one line is cut to this many characters.
const LINE_CHARS: usize = 140;

/// A tool and its argument on one line.
pub(crate) fn line(tool: &str, input: &str) -> String {
    let words = [tool, input].into_iter().flat_map(str::split_whitespace);
    let mut shown = String::new();
    for word in words {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
        if let Some((cut, _)) = shown.char_indices().nth(LINE_CHARS) {
            shown.truncate(cut);
            shown.push('…');
            break;
        }
    }
    shown
}
