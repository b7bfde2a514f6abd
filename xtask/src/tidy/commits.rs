//! Rule about commit subjects: `area: imperative`, at most 72 characters, one change.

use anyhow::Result;

use crate::shell;

const MAX_SUBJECT_CHARS: usize = 72;

/// Checks the commits of this branch that are not on `main`. A checkout without `main` or without git passes.
pub(super) fn subjects() -> Result<Vec<String>> {
    let mut log = shell::program("git")?;
    let Ok(subjects) = shell::read(log.args(["log", "--no-merges", "--format=%s", "main..HEAD"]))
    else {
        return Ok(Vec::new());
    };
    let problems = subjects.lines().filter_map(|subject| Some((subject, problem(subject)?)));
    Ok(problems.map(|(subject, problem)| format!("`{subject}`: {problem}")).collect())
}

fn problem(subject: &str) -> Option<&'static str> {
    let is_area = |area: &str| {
        !area.is_empty()
            && area.chars().all(|c| c.is_ascii_lowercase() || "-_/0123456789".contains(c))
    };
    let Some((_, text)) = subject.split_once(": ").filter(|(area, _)| is_area(area)) else {
        return Some("must have the form `area: imperative`");
    };
    if subject.chars().count() > MAX_SUBJECT_CHARS {
        return Some("must have at most 72 characters");
    }
    if subject.contains(';') {
        return Some("must describe one change, without `;`");
    }
    let is_sentence = text.ends_with('.') || text.starts_with(|c: char| c.is_ascii_uppercase());
    is_sentence.then_some("must begin with a lower-case verb and end without a full stop")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_an_area_and_one_short_change() {
        let long = format!("engine: {}", "x".repeat(65));
        for (subject, expected) in [
            ("engine: group modules by layer", ""),
            ("rb-store/sql: share statements", ""),
            ("Lints", "area"),
            ("A longer sentence: with a colon", "area"),
            (long.as_str(), "72"),
            ("engine: add this; remove that", "one change"),
            ("engine: Add this", "lower-case"),
            ("engine: add this.", "lower-case"),
        ] {
            let found = problem(subject).unwrap_or_default();
            assert!(
                found.contains(expected) && found.is_empty() == expected.is_empty(),
                "{subject}: {found}"
            );
        }
    }
}
