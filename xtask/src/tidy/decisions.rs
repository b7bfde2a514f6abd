//! The rule about decisions: each has a number of its own, a context, a choice and a price.

use super::Repository;

const FOLDER: &str = "docs/decisions/";
const PARTS: [&str; 3] = ["Context", "Choice", "Price"];

pub(super) fn complete(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut last = "";
    let files = repository
        .ending(".md")
        .filter_map(|file| Some((file.path.strip_prefix(FOLDER)?, file.text.as_str())));
    for (name, text) in files {
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            complaints.push(format!("{FOLDER}{name}: begins without a number of four digits"));
        }
        if number == last {
            complaints.push(format!("{FOLDER}{name}: the number {number} is taken"));
        }
        last = number;
        if !text.starts_with("# ") {
            complaints.push(format!("{FOLDER}{name}: begins without a title"));
        }
        if !has_parts(text) {
            complaints.push(format!("{FOLDER}{name}: its parts must be {}", PARTS.join(", ")));
        }
    }
    complaints
}

/// The parts come in their order, each with a heading or in bold at the start of a line; others may stand between.
fn has_parts(text: &str) -> bool {
    let mut lines = text.lines();
    PARTS.iter().all(|part| {
        let (heading, bold) = (format!("## {part}"), format!("**{part}.**"));
        lines.any(|line| line == heading || line.starts_with(&bold))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_there_and_in_order() {
        assert!(has_parts("## Context\nx\n## Choice\n## Price"));
        assert!(has_parts("**Context.** x\n**Choice.** y\n**Why.** z\n**Price.** w"));
        assert!(!has_parts("## Choice\n## Context\n## Price"));
        assert!(!has_parts("## Context\n## Choice"));
    }
}
