//! What could not be read: told as it comes up, counted for the end.

use rb_wire::transcripts::Complaint;

use super::Piece;
use crate::out::{Out, counted};

/// So many complaints of one file are shown.
const SHOWN_MAX: u64 = 10;

/// What could not be read so far.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    file: String,
    of_file: u64,
    /// Lines, or files read as a whole, that were lost, or lost something.
    bad_lines: u64,
    /// Files that could not be read, or not to their end.
    bad_paths: u64,
    /// Files of folders that nobody recognised, and the first of them.
    left_out: u64,
    first_left_out: String,
}

impl Complaints {
    /// Something was lost.
    pub(crate) fn any_loss(&self) -> bool {
        self.bad_lines + self.bad_paths > 0
    }

    /// Tells what is wrong with a piece. The pieces of a file come together.
    pub(crate) fn of_piece(&mut self, piece: &Piece, complaints: &[Complaint], out: &mut Out) {
        if self.file != piece.source.name {
            self.close_file(out);
            self.file.clone_from(&piece.source.name);
        }
        self.bad_lines += u64::from(complaints.iter().any(Complaint::is_loss));
        for complaint in complaints {
            self.of_file += 1;
            if self.of_file > SHOWN_MAX {
                continue;
            }
            let number = piece.number + complaint.line.saturating_sub(1);
            let text = format!("{}:{number}: {}", piece.source.name, complaint.trouble);
            if complaint.is_loss() { out.error(&text) } else { out.warning(&text) }
        }
    }

    /// A line that could not be dealt with.
    pub(crate) fn line(&mut self, text: &str, out: &mut Out) {
        out.error(text);
        self.bad_lines += 1;
    }

    /// A path that cannot be read, or not to its end.
    pub(crate) fn path(&mut self, text: &str, out: &mut Out) {
        out.error(text);
        self.bad_paths += 1;
    }

    /// A file of a folder that is no transcript.
    pub(super) fn left_out(&mut self, name: &str) {
        if self.left_out == 0 {
            name.clone_into(&mut self.first_left_out);
        }
        self.left_out += 1;
    }

    /// Tells how many there were.
    pub(super) fn tell_left_out(&mut self, out: &mut Out) {
        let files = std::mem::take(&mut self.left_out);
        if files > 0 {
            let (files, first) = (counted(files, "file"), &self.first_left_out);
            out.warning(&format!(
                "left out, as not a transcript that `rb` knows: {files}, the first {first}"
            ));
        }
    }

    /// No more pieces of this file will come.
    pub(super) fn close_file(&mut self, out: &mut Out) {
        let complaints = std::mem::take(&mut self.of_file);
        if complaints > SHOWN_MAX {
            let more = counted(complaints - SHOWN_MAX, "more complaint");
            out.warning(&format!("{}: {more} like these", self.file));
        }
    }

    /// For people, with its end of line; empty where nothing was lost.
    pub(crate) fn in_words(&self) -> String {
        if !self.any_loss() {
            return String::new();
        }
        let (lines, paths) = (counted(self.bad_lines, "line"), counted(self.bad_paths, "path"));
        format!("not read, or not in full: {lines}, {paths}; see the errors\n")
    }
}
