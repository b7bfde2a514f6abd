//! The house rules, run as tests: each rule looks at the whole repository and gives its complaints.
//!
//! A rule that a reviewer would have to remember belongs here instead. `cargo test -p xtask` runs every rule as
//! a test of its own; `cargo xtask tidy` runs them in a moment and prints what is wrong.

mod crates;
mod decisions;
mod hygiene;
mod licence;
mod sources;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::shell;

pub(crate) use hygiene::licences as hygiene;

/// Gives one line for everything that breaks the rule.
type Rule = fn(&Repository) -> Vec<String>;

const RULES: [(&str, Rule); 12] = [
    ("no file is longer than a sitting", sources::length),
    ("every source file says what it is", sources::opening),
    ("nothing is left undone", words::undone),
    ("no machine is named", words::machines),
    ("no registry but the public one", words::registries),
    ("the set of crates is deliberate", |all| or_why_not(crates::set(all))),
    ("crates use only what they may", |all| or_why_not(crates::uses(all))),
    ("versions and lints are inherited", |all| or_why_not(crates::inheritance(all))),
    ("the engine stays pure", sources::engine_is_pure),
    ("decisions are complete", decisions::complete),
    ("what is locked comes from one place", |all| or_why_not(hygiene::sources(all))),
    ("nothing banned is locked", |all| or_why_not(hygiene::bans(all))),
];

/// What all rules complain about.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let repository = Repository::read()?;
    let mut all = Vec::new();
    for (name, rule) in RULES {
        all.extend(rule(&repository).into_iter().map(|complaint| format!("{name}: {complaint}")));
    }
    Ok(all)
}

/// A rule that cannot be checked does not hold.
fn or_why_not(complaints: Result<Vec<String>>) -> Vec<String> {
    complaints.unwrap_or_else(|error| vec![format!("{error:#}")])
}

/// The files of the checkout, read once.
pub(crate) struct Repository {
    root: PathBuf,
    files: Vec<File>,
}

struct File {
    /// Relative to the root, with `/`.
    path: String,
    /// Empty for what is no text.
    text: String,
}

/// What belongs to tools, not to us.
const NOT_OURS: [&str; 6] =
    [".git", "target", "node_modules", "__pycache__", ".venv", "proptest-regressions"];

impl Repository {
    fn read() -> Result<Self> {
        let root = shell::root()?;
        let mut files = Vec::new();
        collect(&root, &root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root, files })
    }

    /// The files with that ending.
    fn ending(&self, ending: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// The file of that path.
    fn file(&self, path: &str) -> Result<&File> {
        self.files
            .iter()
            .find(|file| file.path == path)
            .with_context(|| format!("{path} is missing"))
    }

    /// A file read as TOML.
    fn toml(&self, path: &str) -> Result<toml::Table> {
        self.file(path)?.text.parse().with_context(|| path.to_owned())
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if NOT_OURS.iter().any(|not_ours| name == *not_ours) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            let text = String::from_utf8(std::fs::read(&path)?).unwrap_or_default();
            let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            files.push(File { path, text });
        }
    }
    Ok(())
}

impl File {
    /// What is outside `#[cfg(test)]`, which stands at the end of a file by custom.
    fn before_tests(&self) -> &str {
        match self.text.find("\n#[cfg(test)]\nmod tests") {
            Some(at) => &self.text[..=at],
            None => &self.text,
        }
    }

    /// Nothing but tests.
    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(name: &str) {
        let rule = RULES.iter().find(|(known, _)| *known == name).expect("a rule").1;
        let complaints = rule(&Repository::read().expect("a checkout"));
        assert!(complaints.is_empty(), "{name}:\n  {}\n", complaints.join("\n  "));
    }

    macro_rules! rules {
        ($($test:ident: $name:literal),* $(,)?) => {
            $(#[test] fn $test() { holds($name); })*

            #[test]
            fn every_rule_is_tested() {
                assert_eq!([$($name),*].as_slice(), RULES.map(|(name, _)| name).as_slice());
            }
        };
    }

    rules! {
        no_file_is_longer_than_a_sitting: "no file is longer than a sitting",
        every_source_file_says_what_it_is: "every source file says what it is",
        nothing_is_left_undone: "nothing is left undone",
        no_machine_is_named: "no machine is named",
        no_registry_but_the_public_one: "no registry but the public one",
        the_set_of_crates_is_deliberate: "the set of crates is deliberate",
        crates_use_only_what_they_may: "crates use only what they may",
        versions_and_lints_are_inherited: "versions and lints are inherited",
        the_engine_stays_pure: "the engine stays pure",
        decisions_are_complete: "decisions are complete",
        what_is_locked_comes_from_one_place: "what is locked comes from one place",
        nothing_banned_is_locked: "nothing banned is locked",
    }
}
