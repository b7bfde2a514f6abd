//! Problems found in a transcript, with their line and the recommended fix.

use std::fmt;

/// Problem that an importer found in its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line number within the input, counted from 1.
    pub line: u64,
    /// Kind of the problem and its details.
    pub kind: DiagnosticKind,
}

impl Diagnostic {
    /// Returns `true` if a line or steps were skipped; otherwise the input was only repaired.
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

/// Kinds of problems. Each message contains the problem and the recommended fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiagnosticKind {
    /// The line is not valid JSON.
    #[error(
        "not JSON ({detail}, column {column}); every line must be one run, a whole JSON object"
    )]
    NotJson {
        /// Message of the JSON parser.
        detail: String,
        /// Byte column, counted from 1.
        column: usize,
    },
    /// The line is valid JSON but not an object.
    #[error(
        "{found}, where a run was expected; write one object a line: {{\"run_id\": …, \"steps\": […]}}"
    )]
    NotAnObject {
        /// Actual type of the value.
        found: &'static str,
    },
    /// The `steps` field is missing.
    #[error("the run has no `steps`; give it a list, which may be empty")]
    NoSteps,
    /// The `steps` field is not a list.
    #[error("`steps` is {found}; it must be a list of objects")]
    StepsNotAList {
        /// Actual type of the value.
        found: &'static str,
    },
    /// Some steps are not objects.
    #[error(
        "`steps` that are not objects: {count}, the first is number {first}; each counts as a step in which nothing happened"
    )]
    StepsNotObjects {
        /// Index of the first one, counted from 0.
        first: usize,
        /// Number of such steps.
        count: usize,
    },
    /// The text contains invalid UTF-8 or invalid escapes.
    #[error(
        "not valid Unicode; what could not be read was replaced by \u{fffd}; write the file as UTF-8"
    )]
    NotUnicode,
    /// The text is valid JSON only up to this position.
    #[error("not JSON ({detail}, column {column}); what stands before it was read")]
    Damaged {
        /// Message of the JSON parser.
        detail: String,
        /// Byte column, counted from 1.
        column: usize,
    },
    /// The text ends in the middle of a value.
    #[error("ends in the middle, as a run that is still going on does; what is there was read")]
    CutOff,
    /// Strings contain line breaks.
    #[error("lines were broken inside of strings, as terminals do; they were joined")]
    Wrapped,
    /// Some records are not objects.
    #[error("not objects, as they must be: {count}, the first is {found}; they were left out")]
    NotRecords {
        /// Actual type of the first one.
        found: &'static str,
        /// Number of such records.
        count: usize,
    },
    /// The format was not recognised.
    #[error("not a transcript that `rb` knows; docs/transcripts.md lists the formats")]
    Unrecognised,
    /// Tool results without a matching call.
    #[error("results of calls that are not there: {count}; they were left out")]
    NoCallFor {
        /// Number of such results.
        count: usize,
    },
    /// The file contains labels of a run that is in another file.
    #[error("labels without the run they are about; it has no steps here")]
    LabelsOnly,
    /// The trace contains no model or tool calls.
    #[error(
        "nothing in it is a call of a model or a tool (spans: {spans}); is content capture switched on?"
    )]
    NothingOfAnAgent {
        /// Number of spans.
        spans: usize,
    },
    /// The text contains numbers in Python notation that are not valid JSON.
    #[error("`NaN` and `Infinity` are not JSON; they were read as null")]
    NotANumber,
}
