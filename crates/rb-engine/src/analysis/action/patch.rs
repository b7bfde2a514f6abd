//! Finds the files that a patch changes.

use super::Kind;
use super::effects::Effects;

/// Reads the headers of a unified diff, or of the block format with `*** Update File:`.
pub(super) fn walk(text: &str, effects: &mut Effects) {
    effects.add_kind(Kind::Edit);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("*** ") {
            if let Some(path) = after(rest, "Update File: ").or_else(|| after(rest, "Add File: ")) {
                effects.write(path);
            } else if let Some(path) = after(rest, "Delete File: ") {
                effects.remove(path);
            } else if let Some(path) = after(rest, "Move to: ") {
                effects.write(path);
            }
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.split('\t').next().unwrap_or(path);
            effects.write(path.strip_prefix("b/").unwrap_or(path));
        }
    }
}

fn after<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.strip_prefix(prefix).map(str::trim)
}
