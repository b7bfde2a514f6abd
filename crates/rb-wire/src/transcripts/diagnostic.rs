//! What was wrong with a transcript, where, and what to do about it.

use std::fmt;

/// Something an importer could not take as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Counted from 1 within the bytes the importer was given.
    pub line: u64,
    /// What it was.
    pub kind: DiagnosticKind,
}

impl Diagnostic {
    /// Something was left out, a whole line or some steps. Otherwise it was only mended.
    pub fn is_loss(&self) -> bool {
        match self.kind {
            DiagnosticKind::NotJson { .. }
            | DiagnosticKind::NotAnObject { .. }
            | DiagnosticKind::NoSteps
            | DiagnosticKind::StepsNotAList { .. }
            | DiagnosticKind::StepsNotObjects { .. }
            | DiagnosticKind::Damaged { .. }
            | DiagnosticKind::NotRecords { .. }
            | DiagnosticKind::Unrecognised => true,
            DiagnosticKind::NotUnicode
            | DiagnosticKind::NotANumber
            | DiagnosticKind::CutOff
            | DiagnosticKind::Wrapped
            | DiagnosticKind::NoCallFor { .. }
            | DiagnosticKind::LabelsOnly
            | DiagnosticKind::NothingOfAnAgent { .. } => false,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.kind)
    }
}

/// The kinds of trouble. Each message says what was wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiagnosticKind {
    /// The line is not JSON.
    #[error(
        "not JSON ({detail}, column {column}); every line must be one run, a whole JSON object"
    )]
    NotJson {
        /// What the parser says.
        detail: String,
        /// Where, in bytes from 1.
        column: usize,
    },
    /// The line is JSON but not an object.
    #[error(
        "{found}, where a run was expected; write one object a line: {{\"run_id\": …, \"steps\": […]}}"
    )]
    NotAnObject {
        /// What it is instead.
        found: &'static str,
    },
    /// There is no list of steps.
    #[error("the run has no `steps`; give it a list, which may be empty")]
    NoSteps,
    /// `steps` is something else than a list.
    #[error("`steps` is {found}; it must be a list of objects")]
    StepsNotAList {
        /// What it is instead.
        found: &'static str,
    },
    /// Some steps are not objects.
    #[error(
        "`steps` that are not objects: {count}, the first is number {first}; each counts as a step in which nothing happened"
    )]
    StepsNotObjects {
        /// The first of them, counted from 0.
        first: usize,
        /// How many there are.
        count: usize,
    },
    /// Bytes or escapes that are no characters.
    #[error(
        "not valid Unicode; what could not be read was replaced by \u{fffd}; write the file as UTF-8"
    )]
    NotUnicode,
    /// The text is JSON up to here and no further.
    #[error("not JSON ({detail}, column {column}); what stands before it was read")]
    Damaged {
        /// What the parser says.
        detail: String,
        /// Where, in bytes from 1.
        column: usize,
    },
    /// The text ends in the middle of a value.
    #[error("ends in the middle, as a run that is still going on does; what is there was read")]
    CutOff,
    /// Line breaks inside strings.
    #[error("lines were broken inside of strings, as terminals do; they were joined")]
    Wrapped,
    /// Something else than objects where some were expected.
    #[error("not objects, as they must be: {count}, the first is {found}; they were left out")]
    NotRecords {
        /// What the first is instead.
        found: &'static str,
        /// How many there are.
        count: usize,
    },
    /// No importer knows the format.
    #[error("not a transcript that `rb` knows; docs/transcripts.md lists the formats")]
    Unrecognised,
    /// Answers to calls that are not there.
    #[error("results of calls that are not there: {count}; they were left out")]
    NoCallFor {
        /// How many there are.
        count: usize,
    },
    /// A file that says what was wrong with a run that is kept elsewhere.
    #[error("labels without the run they are about; it has no steps here")]
    LabelsOnly,
    /// A trace of some other program.
    #[error(
        "nothing in it is a call of a model or a tool (spans: {spans}); is content capture switched on?"
    )]
    NothingOfAnAgent {
        /// How many spans there are.
        spans: usize,
    },
    /// Python's spelling of numbers that JSON does not have.
    #[error("`NaN` and `Infinity` are not JSON; they were read as null")]
    NotANumber,
}
