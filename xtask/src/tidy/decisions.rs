//! The rule about decisions: numbered without gaps, each with its context, its choice and its price.

use super::Repository;

const FOLDER: &str = "docs/decisions/";
const PARTS: [&str; 3] = ["## Context", "## Choice", "## Price"];

pub(super) fn complete(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    let files =
        repository.ending(".md").filter_map(|file| Some((file.path.strip_prefix(FOLDER)?, file)));
    for (at, (name, file)) in files.enumerate() {
        let number = format!("{:04}", at + 1);
        if !name.starts_with(&format!("{number}-")) {
            complaints.push(format!("{FOLDER}{name}: the next number is {number}"));
        }
        if !file.text.starts_with("# ") {
            complaints.push(format!("{FOLDER}{name}: begins without a title"));
        }
        let headings: Vec<&str> =
            file.text.lines().filter(|line| line.starts_with("## ")).collect();
        if headings != PARTS {
            complaints.push(format!("{FOLDER}{name}: its parts must be {}", PARTS.join(", ")));
        }
    }
    complaints
}
