//! JSON fragments that several dialects insert into requests.

use crate::body_edits::BodyEdits;
use crate::json::{Value, quoted};

/// Returns a text block as Anthropic and OpenAI Chat write it.
pub(super) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

/// Inserts an item of a list behind another.
pub(super) fn append_after(item: Value<'_>, json: &str, edits: &mut BodyEdits<'_>) {
    edits.insert(item.span().end, format!(",{json}"));
}

/// Appends an item to a list.
pub(super) fn append_item(list: Value<'_>, new: &str, edits: &mut BodyEdits<'_>) {
    match list.items().last() {
        Some(item) => append_after(item, new, edits),
        None => edits.insert(list.span().start + 1, new),
    }
}

/// Appends a block to content that is a list of blocks, or a string that becomes one.
pub(super) fn append_block(content: Value<'_>, block: &str, edits: &mut BodyEdits<'_>) {
    if content.is_string() {
        let span = content.span();
        edits.insert(span.start, r#"[{"type":"text","text":"#);
        edits.insert(span.end, format!("}},{block}]"));
    } else {
        append_item(content, block, edits);
    }
}

/// Appends a paragraph to a string; does nothing to other values.
pub(super) fn append_paragraph(base: Value<'_>, text: &str, edits: &mut BodyEdits<'_>) {
    if !base.is_string() {
        return;
    }
    let gap = if base.raw_str().is_empty() { "" } else { "\n\n" };
    let inserted = quoted(&format!("{gap}{text}"));
    edits.insert(base.span().end - 1, &inserted[1..inserted.len() - 1]);
}

/// Inserts a field at the start of an object.
pub(super) fn insert_field(body: &[u8], name: &str, value: &str, edits: &mut BodyEdits<'_>) {
    let Some(open) = body.iter().position(|byte| *byte == b'{') else { return };
    let is_empty = body[open + 1..].trim_ascii_start().first() == Some(&b'}');
    let comma = if is_empty { "" } else { "," };
    edits.insert(open + 1, format!("{}:{value}{comma}", quoted(name)));
}
