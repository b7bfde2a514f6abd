//! Input that could not be read: reported as it is found, counted for the summary.

use rb_wire::transcripts::Diagnostic;

use super::Chunk;
use crate::ui::{Out, counted};

/// Maximum number of diagnostics shown per file.
const MAX_PER_FILE: u64 = 10;

/// Counts of the input errors so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    file: String,
    in_file: u64,
    /// Chunks that were lost in whole or in part.
    bad_lines: u64,
    /// Files that could not be read to their end.
    bad_paths: u64,
    /// Number of unrecognised files in directories, and the name of the first.
    skipped: u64,
    first_skipped: String,
}

impl Diagnostics {
    /// Returns whether any input was lost.
    pub(crate) fn any_loss(&self) -> bool {
        self.bad_lines + self.bad_paths > 0
    }

    /// Reports the diagnostics of a chunk. Chunks of one file are consecutive.
    pub(crate) fn report_chunk(&mut self, chunk: &Chunk, found: &[Diagnostic], out: &mut Out) {
        if self.file != chunk.source.name {
            self.close_file(out);
            self.file.clone_from(&chunk.source.name);
        }
        self.bad_lines += u64::from(found.iter().any(Diagnostic::is_loss));
        for complaint in found {
            self.in_file += 1;
            if self.in_file > MAX_PER_FILE {
                continue;
            }
            let number = chunk.number + complaint.line.saturating_sub(1);
            let text = format!("{}:{number}: {}", chunk.source.name, complaint.kind);
            if complaint.is_loss() { out.error(&text) } else { out.warning(&text) }
        }
    }

    /// Reports a line that could not be processed.
    pub(crate) fn bad_line(&mut self, text: &str, out: &mut Out) {
        out.error(text);
        self.bad_lines += 1;
    }

    /// Reports a path that could not be read to its end.
    pub(crate) fn bad_path(&mut self, text: &str, out: &mut Out) {
        out.error(text);
        self.bad_paths += 1;
    }

    /// Counts a file of a directory that is not a transcript.
    pub(super) fn skip(&mut self, name: &str) {
        if self.skipped == 0 {
            name.clone_into(&mut self.first_skipped);
        }
        self.skipped += 1;
    }

    /// Reports the totals that are only known at the end of the input.
    pub(super) fn close(&mut self, out: &mut Out) {
        self.close_file(out);
        let files = std::mem::take(&mut self.skipped);
        if files > 0 {
            let (files, first) = (counted(files, "file"), &self.first_skipped);
            out.warning(&format!("skipped {files} in no known transcript format (first: {first})"));
        }
    }

    fn close_file(&mut self, out: &mut Out) {
        let count = std::mem::take(&mut self.in_file);
        if count > MAX_PER_FILE {
            let more = counted(count - MAX_PER_FILE, "more diagnostic");
            out.warning(&format!("{}: {more} not shown", self.file));
        }
    }

    /// Returns a line for the summary, empty if nothing was lost.
    pub(crate) fn summary(&self) -> String {
        if !self.any_loss() {
            return String::new();
        }
        let (lines, paths) = (counted(self.bad_lines, "line"), counted(self.bad_paths, "path"));
        format!("not read completely: {lines}, {paths}; see the errors above\n")
    }
}
