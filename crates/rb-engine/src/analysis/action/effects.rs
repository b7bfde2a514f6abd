//! What has been gathered while a call is taken apart: kinds, files, commands, targets.
//!
//! Everything here has a limit, so that a hostile command costs no more than a long one.

use super::Kind;
use super::file_refs::{FileRef, Lines, normalise};
use crate::analysis::text;

/// At most this many files of each sort, commands and test targets.
pub(super) const LIST_MAX: usize = 16;
/// Longer names are cut.
const NAME_CHARS_MAX: usize = 120;
/// Longer queries are cut.
pub(super) const QUERY_CHARS_MAX: usize = 300;

/// The parts of one act.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each noted on its own")]
pub(super) struct Effects {
    kinds: u16,
    pub(super) edits: bool,
    pub(super) tests: bool,
    pub(super) verifies: bool,
    pub(super) reverts: bool,
    pub(super) waits: bool,
    pub(super) reads: Vec<FileRef>,
    pub(super) writes: Vec<FileRef>,
    pub(super) removes: Vec<FileRef>,
    pub(super) commands: Vec<String>,
    pub(super) targets: Vec<String>,
    pub(super) query: Option<String>,
    /// The folder in which the command stands, as far as `cd` tells.
    pub(super) base: String,
    /// The command before in the pipe shows a file as it is.
    pub(super) shows: bool,
    /// What was really done, without decoration such as `cd`, `echo` and comments.
    pub(super) canon: String,
}

impl Effects {
    /// This part of the act is of that kind.
    pub(super) fn note(&mut self, kind: Kind) {
        self.kinds |= 1 << (kind as u16);
        self.tests |= kind == Kind::Test;
        self.verifies |= kind == Kind::Test;
        self.edits |= kind == Kind::Edit;
        self.waits |= kind == Kind::Poll;
    }

    /// The kind that decides, by the order of `Kind::BY_PRIORITY`.
    pub(super) fn primary(&self) -> Option<Kind> {
        Kind::BY_PRIORITY.into_iter().find(|kind| self.has(*kind))
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.kinds & (1 << (kind as u16)) != 0
    }

    pub(super) fn read(&mut self, path: &str, lines: Option<Lines>) {
        let file = FileRef { path: normalise(&self.base, path), lines };
        // Looking at what was just written is a check of it.
        self.verifies |=
            self.edits && self.writes.iter().any(|written| written.is_same_file(&file));
        push_file(&mut self.reads, file);
    }

    /// A filter shows only these lines of the file that was read before it in the pipe.
    pub(super) fn narrow(&mut self, lines: Option<Lines>) {
        if self.shows
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

    /// A program, with its sub-command where that says more.
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

    /// The first query stands for the act.
    pub(super) fn ask(&mut self, query: &str) {
        let query = query.trim();
        if self.query.is_none() && !query.is_empty() {
            self.query = Some(text::prefix(query, QUERY_CHARS_MAX).to_owned());
        }
    }

    /// Runs a program whose output tells whether the work is right.
    pub(super) fn run_program(&mut self) {
        self.note(Kind::Run);
        self.verifies = true;
    }
}

fn push_file(list: &mut Vec<FileRef>, file: FileRef) {
    let path = file.path.as_str();
    // A stream, a place-holder or a variable is no file that could be met again.
    let discarded = matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "-" | "{}")
        || path.starts_with("<(")
        || path.starts_with("$(")
        || (path.starts_with('$') && !path.contains('/'));
    if list.len() < LIST_MAX && !discarded && !list.contains(&file) {
        list.push(file);
    }
}
