//! Rules about source files: length, summary, and names that the engine may not use.

use super::{File, Repository};

/// Maximum number of lines before the tests.
const MAX_CODE_LINES: usize = 500;
/// Maximum number of lines of a file, including tests.
const MAX_LINES: usize = 1_000;

pub(super) fn length(repository: &Repository) -> Vec<String> {
    let too_long = |file: &File| {
        let (code, all) = (file.before_tests().lines().count(), file.text.lines().count());
        if !file.is_test() && code > MAX_CODE_LINES {
            return Some(format!(
                "{}: {code} lines before the tests, at most {MAX_CODE_LINES}",
                file.path
            ));
        }
        (all > MAX_LINES).then(|| format!("{}: {all} lines, at most {MAX_LINES}", file.path))
    };
    repository.ending(".rs").filter_map(too_long).collect()
}

pub(super) fn opening(repository: &Repository) -> Vec<String> {
    let without = repository.ending(".rs").filter(|file| !file.text.starts_with("//! "));
    without.map(|file| format!("{}: must begin with `//! ` and a sentence", file.path)).collect()
}

/// Modules of the standard library with IO, and names that imply IO, a clock, randomness, unordered iteration, async or JSON.
const IMPURE_MODULES: [&str; 8] = ["env", "fs", "io", "net", "os", "process", "thread", "time"];
const IMPURE_WORDS: [&str; 14] = [
    "HashMap",
    "HashSet",
    "Instant",
    "SystemTime",
    "async",
    "await",
    "eprintln",
    "println",
    "rand",
    "reqwest",
    "serde",
    "serde_json",
    "tokio",
    "unsafe",
];

pub(super) fn engine_is_pure(repository: &Repository) -> Vec<String> {
    let engine =
        repository.ending(".rs").filter(|file| file.path.starts_with("crates/rb-engine/src/"));
    let mut problems = Vec::new();
    for file in engine {
        for (at, line) in file.before_tests().lines().enumerate() {
            if let Some(word) = impure_word(line) {
                problems.push(format!("{}:{}: names `{word}`", file.path, at + 1));
            }
        }
    }
    problems
}

/// Reports uses of the server in commands that work without one.
pub(super) fn offline_commands(repository: &Repository) -> Vec<String> {
    let server = ["rb_server", "rb_gateway", "rb_api", "rb_dashboard", "axum", "hyper"];
    let offline =
        ["commands/check/", "commands/report", "commands/quality/", "input/", "engine_args"];
    let is_offline = |path: &str| {
        let path = path.strip_prefix("crates/rb/src/").unwrap_or_default();
        offline.iter().any(|prefix| path.starts_with(prefix))
    };
    let files = repository.ending(".rs").filter(|file| is_offline(&file.path));
    let names = |text: &str, name: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    };
    files
        .flat_map(|file| {
            let used = server.iter().filter(|name| names(&file.text, name));
            used.map(|name| format!("{}: an offline command may not use {name}", file.path))
        })
        .collect()
}

fn impure_word(line: &str) -> Option<String> {
    let code = without_strings(line);
    let code = code.split("//").next().unwrap_or_default();
    let mut words =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    if let Some(word) = words.clone().find(|word| IMPURE_WORDS.contains(word)) {
        return Some(word.to_owned());
    }
    // `std::fs::…`, or `use std::{fs, …}` on one line.
    let mut after = code.split("std::").skip(1);
    let named = after.find_map(|rest| {
        let rest = if rest.starts_with('{') { rest } else { rest.split("::").next()? };
        let mut names = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
        names.find(|name| IMPURE_MODULES.contains(name))
    });
    named.filter(|_| words.any(|word| word == "std")).map(|module| format!("std::{module}"))
}

/// Empties the string literals that begin and end on this line.
fn without_strings(line: &str) -> String {
    let line = line.replace("\\\"", "").replace("'\"'", "");
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offline_commands_do_not_use_the_server() {
        let server = "use rb_server::config::RawConfig;";
        let files = [
            ("crates/rb/src/commands/check/mod.rs", server),
            ("crates/rb/src/settings.rs", server),
        ];
        let problem =
            "crates/rb/src/commands/check/mod.rs: an offline command may not use rb_server";
        assert_eq!(offline_commands(&Repository::of(&files)), [problem]);
    }

    #[test]
    fn impure_lines_are_found_and_others_are_not() {
        let cases = [
            ("use std::fs;", Some("std::fs")),
            ("use std::{fmt, io};", Some("std::io")),
            ("let now = std::time::Instant::now();", Some("Instant")),
            ("let seen: HashMap<u8, u8>;", Some("HashMap")),
            ("use std::collections::BTreeMap;", None),
            ("use std::fmt::Write as _;", None),
            ("let random = brand; // std::fs is not for us", None),
            ("//! No async here.", None),
            (r#"let words = ["await", "a \" async"];"#, None),
            (r#"let word = "x"; run().await;"#, Some("await")),
        ];
        for (line, expected) in cases {
            assert_eq!(impure_word(line).as_deref(), expected, "{line}");
        }
    }
}
