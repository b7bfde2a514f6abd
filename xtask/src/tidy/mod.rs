//! Project rules that are checked over the whole repository.
//!
//! A rule that a reviewer would have to remember belongs here instead. `cargo test -p xtask` runs each rule as a separate
//! test; `cargo xtask tidy` runs all of them and prints the problems.

mod commits;
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
    all.extend(
        commits::subjects()?.into_iter().map(|problem| format!("commit subjects: {problem}")),
    );
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

    /// A rule, files that violate it, and a part of the reported problem.
    type Violation<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

    #[test]
    fn every_rule_reports_a_violation() {
        let long = format!("//! Long.\n{}", "f();\n".repeat(500));
        let deny = "[bans]\ndeny = [{ name = \"bad\", use-instead = \"good\" }]";
        let record =
            prose::names().map(|name| format!("{name} = 0.0")).collect::<Vec<_>>().join("\n");
        let cases: [Violation<'_>; 17] = [
            ("files have a maximum length", &[("a.rs", &long)], "501 lines before the tests"),
            ("source files begin with a summary", &[("a.rs", "fn main() {}")], "must begin with"),
            ("no unfinished work is marked", &[("a.rs", concat!("// TO", "DO"))], "a.rs:1"),
            ("no local path is named", &[("a.md", concat!("/ho", "me/carol/x"))], "home directory"),
            (
                "only the public registry is named",
                &[("a.toml", concat!("[sou", "rce.x]"))],
                "a.toml:1",
            ),
            ("the set of crates is complete", &[("ARCHITECTURE.md", "")], "rb-engine is missing"),
            (
                "crates respect the layers",
                &[("crates/rb-engine/Cargo.toml", "[dependencies]\nrb-store = {}")],
                "rb-engine may not depend on rb-store",
            ),
            (
                "versions and lints are inherited",
                &[("crates/rb-engine/Cargo.toml", "[package]\n[dependencies]\nx = \"1\"")],
                "must take x from the workspace",
            ),
            (
                "modules have no cycles",
                &[("x/src/a.rs", "use crate::b::B;"), ("x/src/b.rs", "use crate::a::A;")],
                "x/src: a, b depend on each other",
            ),
            (
                "the engine is pure",
                &[("crates/rb-engine/src/a.rs", "//! A.\nuse std::fs;")],
                "names `std::fs`",
            ),
            (
                "offline commands do not use the server",
                &[("crates/rb/src/input/mod.rs", "use rb_server::App;")],
                "an offline command may not use rb_server",
            ),
            (
                "idioms in comments only fall",
                &[("a.rs", "// Nobody knows."), ("xtask/prose.toml", &record)],
                "`whoever_or_nobody`: 1000.0 per 1,000",
            ),
            ("decisions are complete", &[("docs/decisions/x.md", "# X")], "number of four digits"),
            (
                "links of documents have targets",
                &[("a.md", "[b](b.md)")],
                "the link b.md has no target",
            ),
            (
                "the files that CONTRIBUTING names exist",
                &[("CONTRIBUTING.md", "| `a/b.rs` |")],
                "a/b.rs does not exist",
            ),
            (
                "dependencies come from the public registry",
                &[("Cargo.lock", "[[package]]\nname = \"x\"\nsource = \"git+https://x\"")],
                "x comes from git+https://x",
            ),
            (
                "no banned dependency is locked",
                &[("Cargo.lock", "[[package]]\nname = \"bad\""), ("deny.toml", deny)],
                "bad is banned; use good",
            ),
        ];
        assert_eq!(cases.map(|(name, ..)| name), RULES.map(|(name, _)| name));
        for ((name, rule), (_, files, expected)) in RULES.iter().zip(cases) {
            let problems = rule(&Repository::of(files)).join("\n");
            assert!(problems.contains(expected), "{name}: {problems}");
        }
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
