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
