//! Rule about decisions: a unique number, a title, and the parts context, choice and price.

use super::Repository;

const FOLDER: &str = "docs/decisions/";
const PARTS: [&str; 3] = ["Context", "Choice", "Price"];

pub(super) fn complete(repository: &Repository) -> Vec<String> {
    let mut problems = Vec::new();
    let mut last = "";
    let files = repository
        .ending(".md")
        .filter_map(|file| Some((file.path.strip_prefix(FOLDER)?, file.text.as_str())));
    for (name, text) in files {
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            problems
                .push(format!("{FOLDER}{name}: the name must begin with a number of four digits"));
        }
        if number == last {
            problems.push(format!("{FOLDER}{name}: the number {number} is used twice"));
        }
        last = number;
        if !text.starts_with("# ") {
            problems.push(format!("{FOLDER}{name}: must begin with a title"));
        }
        if !has_parts(text) {
            problems.push(format!("{FOLDER}{name}: its parts must be {}", PARTS.join(", ")));
        }
    }
    problems
}

/// Returns true if all parts exist in this order, as headings or in bold at the start of a line.
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
