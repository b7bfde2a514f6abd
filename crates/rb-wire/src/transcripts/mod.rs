//! Recorded runs of agents: one importer a format, one row each in `IMPORTERS`.
//!
//! An importer never fails whole. It gives the runs it could read and a `Complaint` for everything it
//! could not, so one bad line costs that line. Adding a format is a file here and a row in the table.

/// Our own format: one run a line.
pub mod runs;

mod complaint;
mod json;
mod run;

pub use complaint::{Complaint, Trouble};
pub use run::{Run, RunInput, RunStep};

/// What an importer found in a piece of a transcript.
pub type Found<'a> = (Vec<Run<'a>>, Vec<Complaint>);

/// How much of a transcript an importer must see at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Each line stands for itself; a long file can be read in pieces of whole lines.
    Line,
    /// Only the whole file makes sense.
    File,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Importer {
    /// Stable name: shown and chosen by this.
    pub id: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// What to hand to `parse`.
    pub unit: Unit,
    /// Whether the beginning of a file looks like this format. The beginning may end anywhere.
    pub sniff: fn(&[u8]) -> bool,
    /// Reads one or more units. Lines in complaints are counted from 1 within what was handed over.
    pub parse: for<'a> fn(&'a [u8]) -> Found<'a>,
}

/// Every format, the most telling sniff first.
pub static IMPORTERS: [Importer; 1] = [runs::IMPORTER];

/// The first format that recognises the beginning of a file.
pub fn sniff(beginning: &[u8]) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.sniff)(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete() {
        for (at, importer) in IMPORTERS.iter().enumerate() {
            let id = importer.id;
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
            assert!(importer.summary.ends_with('.'), "{id}");
            assert!(IMPORTERS[at + 1..].iter().all(|other| other.id != id), "{id} twice");
            assert!(!(importer.sniff)(b""), "{id} recognises nothing at all");
        }
    }
}
