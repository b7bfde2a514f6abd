//! The effects of a tool call, collected while it is analysed: kinds, files, commands, test targets.
//!
//! Every list and text is limited, so that the cost of a hostile command is bounded.

use super::Kind;
use super::file_refs::{FileRef, Lines, normalise};
use crate::analysis::text;

/// Maximum number of files of each type, of commands and of test targets.
pub(super) const LIST_MAX: usize = 16;
/// Maximum length of a name.
const NAME_CHARS_MAX: usize = 120;
/// Maximum length of a query.
pub(super) const QUERY_CHARS_MAX: usize = 300;

/// The effects of one action.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each noted on its own")]
pub(super) struct Effects {
    kinds: u16,
    pub(super) edits: bool,
    pub(super) tests: bool,
    pub(super) verifies: bool,
    pub(super) reverts: bool,
    pub(super) polls: bool,
    pub(super) reads: Vec<FileRef>,
    pub(super) writes: Vec<FileRef>,
    pub(super) removes: Vec<FileRef>,
    pub(super) commands: Vec<String>,
    pub(super) targets: Vec<String>,
    pub(super) query: Option<String>,
    /// The working directory, as far as `cd` commands determine it.
    pub(super) base: String,
    /// The previous command of the pipe prints a file unchanged.
    pub(super) prints_file: bool,
    /// The canonical form of the commands, without decoration such as `cd`, `echo` and comments.
    pub(super) canonical: String,
}

impl Effects {
    /// Records the kind of a part of the action.
    pub(super) fn add_kind(&mut self, kind: Kind) {
        self.kinds |= 1 << (kind as u16);
        self.tests |= kind == Kind::Test;
        self.verifies |= kind == Kind::Test;
        self.edits |= kind == Kind::Edit;
        self.polls |= kind == Kind::Poll;
    }

    /// Returns the kind of the whole action, by [`Kind::BY_PRIORITY`].
    pub(super) fn primary(&self) -> Option<Kind> {
        Kind::BY_PRIORITY.into_iter().find(|kind| self.has(*kind))
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.kinds & (1 << (kind as u16)) != 0
    }

    pub(super) fn read(&mut self, path: &str, lines: Option<Lines>) {
        let file = FileRef { path: normalise(&self.base, path), lines };
        // Reading a file that was just written verifies it.
        self.verifies |=
            self.edits && self.writes.iter().any(|written| written.is_same_file(&file));
        push_file(&mut self.reads, file);
    }

    /// Applies the line range of a filter to the file that the previous command of the pipe reads.
    pub(super) fn narrow_lines(&mut self, lines: Option<Lines>) {
        if self.prints_file
            && let Some(file) = self.reads.last_mut()
            && file.lines.is_none()
        {
            file.lines = lines;
        }
    }

    pub(super) fn write(&mut self, path: &str) {
        let file = FileRef { path: normalise(&self.base, path), lines: None };
        push_file(&mut self.writes, file);
    }

    pub(super) fn remove(&mut self, path: &str) {
        let file = FileRef { path: normalise(&self.base, path), lines: None };
        push_file(&mut self.removes, file);
    }

    /// Records a program, with its subcommand if that is more specific.
    pub(super) fn command(&mut self, program: &str, sub: &str) {
        let name = if sub.is_empty() {
            text::prefix(program, NAME_CHARS_MAX).to_owned()
        } else {
            format!(
                "{} {}",
                text::prefix(program, NAME_CHARS_MAX),
                text::prefix(sub, NAME_CHARS_MAX)
            )
        };
        if self.commands.len() < LIST_MAX && !self.commands.contains(&name) {
            self.commands.push(name);
        }
    }

    pub(super) fn target(&mut self, target: &str) {
        let target = text::prefix(target, NAME_CHARS_MAX);
        if self.targets.len() < LIST_MAX && !self.targets.iter().any(|known| known == target) {
            self.targets.push(target.to_owned());
        }
    }

    /// Records the query. The first one of an action counts.
    pub(super) fn add_query(&mut self, query: &str) {
        let query = query.trim();
        if self.query.is_none() && !query.is_empty() {
            self.query = Some(text::prefix(query, QUERY_CHARS_MAX).to_owned());
        }
    }

    /// Records a program whose output shows whether the work is correct.
    pub(super) fn run_program(&mut self) {
        self.add_kind(Kind::Run);
        self.verifies = true;
    }
}

fn push_file(list: &mut Vec<FileRef>, file: FileRef) {
    let path = file.path.as_str();
    // A stream, a placeholder or a variable does not identify a file.
    let discarded = matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "-" | "{}")
        || path.starts_with("<(")
        || path.starts_with("$(")
        || (path.starts_with('$') && !path.contains('/'));
    if list.len() < LIST_MAX && !discarded && !list.contains(&file) {
        list.push(file);
    }
}
