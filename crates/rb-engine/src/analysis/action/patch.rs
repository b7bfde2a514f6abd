//! The files that a patch touches.

use super::Kind;
use super::effects::Effects;

/// Reads the headers of a unified diff, or of the block form with `*** Update File:`.
pub(super) fn walk(text: &str, parts: &mut Effects) {
    parts.note(Kind::Edit);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("*** ") {
            if let Some(path) = after(rest, "Update File: ").or_else(|| after(rest, "Add File: ")) {
                parts.write(path);
            } else if let Some(path) = after(rest, "Delete File: ") {
                parts.remove(path);
            } else if let Some(path) = after(rest, "Move to: ") {
                parts.write(path);
            }
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.split('\t').next().unwrap_or(path);
            parts.write(path.strip_prefix("b/").unwrap_or(path));
        }
    }
}

fn after<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.strip_prefix(prefix).map(str::trim)
}
