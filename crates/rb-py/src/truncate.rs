//! Truncation of long tool output in the middle.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::text::utf8;

/// Replaces the middle of a text longer than `threshold_chars` with a note, if that makes it shorter.
#[pyfunction]
#[pyo3(signature = (content, *, threshold_chars = 1800, head_chars = 900, tail_chars = 700))]
pub(crate) fn compress_tool_output(
    content: &Bound<'_, PyString>,
    threshold_chars: usize,
    head_chars: usize,
    tail_chars: usize,
) -> PyResult<String> {
    let text = utf8(content)?;
    let chars = text.chars().count();
    if chars <= threshold_chars {
        return Ok(text.into_owned());
    }
    let dropped = chars.saturating_sub(head_chars.saturating_add(tail_chars));
    let byte_at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) =
        (&text[..byte_at(head_chars)], &text[byte_at(chars - tail_chars.min(chars))..]);
    let short = format!("{head}\n\n[... {dropped} chars truncated ...]\n\n{tail}");
    let is_shorter = dropped > 0 && short.chars().count() < chars;
    Ok(if is_shorter { short } else { text.into_owned() })
}
