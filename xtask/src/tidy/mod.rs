//! Project rules that are checked over the whole repository.
//!
//! A rule that a reviewer would have to remember belongs here instead. `cargo test -p xtask` runs each rule as a separate
//! test; `cargo xtask tidy` runs all of them and prints the problems.

mod crates;
mod decisions;
mod documents;
mod hygiene;
mod licence;
mod modules;
mod prose;
mod sources;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::{out, shell};

pub(crate) use hygiene::licences as hygiene;

/// Returns one line per violation.
type Rule = fn(&Repository) -> Vec<String>;

const RULES: [(&str, Rule); 17] = [
    ("files have a maximum length", sources::length),
    ("source files begin with a summary", sources::opening),
    ("no unfinished work is marked", words::undone),
    ("no local path is named", words::machines),
    ("only the public registry is named", words::registries),
    ("the set of crates is complete", |all| or_error(crates::set(all))),
    ("crates respect the layers", |all| or_error(crates::uses(all))),
    ("versions and lints are inherited", |all| or_error(crates::inheritance(all))),
    ("modules have no cycles", modules::acyclic),
    ("the engine is pure", sources::engine_is_pure),
    ("offline commands do not use the server", sources::offline_commands),
    ("idioms in comments only fall", |all| or_error(prose::ratchet(all))),
    ("decisions are complete", decisions::complete),
    ("links of documents have targets", documents::links),
    ("the files that CONTRIBUTING names exist", |all| or_error(documents::contributing(all))),
    ("dependencies come from the public registry", |all| or_error(hygiene::sources(all))),
    ("no banned dependency is locked", |all| or_error(hygiene::bans(all))),
];

/// Runs all rules and returns their problems. Prints hints that do not fail.
pub(crate) fn problems() -> Result<Vec<String>> {
    let repository = Repository::read()?;
    let mut all = Vec::new();
    for (name, rule) in RULES {
        all.extend(rule(&repository).into_iter().map(|problem| format!("{name}: {problem}")));
    }
    for hint in prose::hints(&repository)? {
        out::line(&format!("    hint: {hint}"));
    }
    Ok(all)
}

/// Turns a failure of the check into a problem.
fn or_error(problems: Result<Vec<String>>) -> Vec<String> {
    problems.unwrap_or_else(|error| vec![format!("{error:#}")])
}

/// The files of the checkout, read once.
pub(crate) struct Repository {
    root: PathBuf,
    files: Vec<File>,
}

struct File {
    /// Relative to the root, with `/`.
    path: String,
    /// Empty for binary files.
    text: String,
}

/// Folders that tools write.
const SKIPPED: [&str; 6] =
    [".git", "target", "node_modules", "__pycache__", ".venv", "proptest-regressions"];

impl Repository {
    fn read() -> Result<Self> {
        let root = shell::root()?;
        let mut files = Vec::new();
        collect(&root, &root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root, files })
    }

    /// Builds a repository from paths and texts.
    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self { root: PathBuf::from("/repository"), files: files.iter().map(file).collect() }
    }

    /// Files whose path has this ending.
    fn ending(&self, ending: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// Finds a file by path.
    fn file(&self, path: &str) -> Result<&File> {
        self.files
            .iter()
            .find(|file| file.path == path)
            .with_context(|| format!("{path} is missing"))
    }

    /// Parses a file as TOML.
    fn toml(&self, path: &str) -> Result<toml::Table> {
        self.file(path)?.text.parse().with_context(|| path.to_owned())
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if SKIPPED.iter().any(|skipped| name == *skipped) {
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
    /// The text before `#[cfg(test)] mod tests`, which is at the end of a file by convention.
    fn before_tests(&self) -> &str {
        match self.text.find("\n#[cfg(test)]\nmod tests") {
            Some(at) => &self.text[..=at],
            None => &self.text,
        }
    }

    /// Contains only tests.
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
        let problems = rule(&Repository::read().expect("a checkout"));
        assert!(problems.is_empty(), "{name}:\n  {}\n", problems.join("\n  "));
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
        files_have_a_maximum_length: "files have a maximum length",
        source_files_begin_with_a_summary: "source files begin with a summary",
        no_unfinished_work_is_marked: "no unfinished work is marked",
        no_local_path_is_named: "no local path is named",
        only_the_public_registry_is_named: "only the public registry is named",
        the_set_of_crates_is_complete: "the set of crates is complete",
        crates_respect_the_layers: "crates respect the layers",
        versions_and_lints_are_inherited: "versions and lints are inherited",
        modules_have_no_cycles: "modules have no cycles",
        the_engine_is_pure: "the engine is pure",
        offline_commands_do_not_use_the_server: "offline commands do not use the server",
        idioms_in_comments_only_fall: "idioms in comments only fall",
        decisions_are_complete: "decisions are complete",
        links_of_documents_have_targets: "links of documents have targets",
        the_files_that_contributing_names_exist: "the files that CONTRIBUTING names exist",
        dependencies_come_from_the_public_registry: "dependencies come from the public registry",
        no_banned_dependency_is_locked: "no banned dependency is locked",
    }
}
