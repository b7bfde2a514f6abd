//! Importers of recorded agent runs: one per format, registered in `IMPORTERS`.
//!
//! An importer never fails as a whole. It returns the runs that it can read and a `Diagnostic` for each problem, so
//! an invalid line costs only that line. A new format is a new file and a row in the table.

/// AgentErrorBench.
mod agent_error_bench;
/// Harbor's interchange format.
mod atif;
/// Claude Code sessions.
mod claude_code;
/// Claude Code's stream of JSON.
mod claude_stream;
/// Codex rollouts.
mod codex;
/// Gemini CLI chats.
mod gemini;
/// Langfuse exports.
mod langfuse;
/// LangSmith runs.
mod langsmith;
/// MAST.
mod mast;
/// mini-swe-agent trajectories.
mod mini_swe_agent;
/// ReasonBlocks format: one run per line.
pub mod native;
/// OpenHands events and evaluations.
mod openhands;
/// OpenTelemetry: OTLP, GenAI and OpenInference.
mod otel;
/// Bare messages of OpenAI and Anthropic.
mod provider_messages;
/// SWE-agent trajectories.
mod swe_agent;
/// tau-bench and tau2-bench results.
mod tau_bench;
/// Failures of multi-agent systems from Who&When.
mod who_and_when;

// Shared modules.
/// Attributes of spans.
mod attributes;
/// Problems found in a transcript.
mod diagnostic;
/// Splits a text into JSON documents.
mod documents;
/// Finds messages inside any JSON value.
mod find_messages;
/// Helpers for raw JSON values.
mod json;
/// Source-specific fields as labels.
mod labels;
/// Lazy JSON reader.
mod lazy_json;
/// Message reader for all dialects.
mod messages;
/// Reader of messages in Python notation.
mod python_repr;
/// Semantic conventions of span attributes.
mod semconv;
/// Format detection from the start of a file.
mod sniff;
/// Conversion of spans to runs.
mod spans;
/// Conversion of conversations to steps.
mod step_builder;
/// Parser of timestamps.
mod time;
/// Parser of token counts.
mod usage;

pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use sniff::FilePreview;

use crate::model::Run;

/// Result of an importer: runs and diagnostics.
pub type Imported<'a> = (Vec<Run<'a>>, Vec<Diagnostic>);

/// Smallest part of a transcript that an importer can parse independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A line. Long files can be read in chunks of whole lines.
    Line,
    /// A JSON document. Equivalent to `Line` if the first line contains a whole document.
    Document,
    /// The whole file.
    File,
}

/// Importer of one format.
#[derive(Debug, Clone, Copy)]
pub struct Importer {
    /// Stable id, used in output and to select the format.
    pub id: &'static str,
    /// One-sentence description for users.
    pub summary: &'static str,
    /// Unit of input for `parse`.
    pub unit: Unit,
    /// Returns `true` if the start of a file matches this format. The start may be cut at any byte.
    pub sniff: fn(&FilePreview<'_>) -> bool,
    /// Parses one or more units. Line numbers in diagnostics are counted from 1 within the input.
    pub parse: for<'a> fn(&'a [u8]) -> Imported<'a>,
}

/// All formats, the most specific detection first.
pub static IMPORTERS: [Importer; 24] = [
    atif::IMPORTER,
    claude_code::IMPORTER,
    codex::IMPORTER,
    gemini::IMPORTER,
    langfuse::IMPORTER,
    langsmith::IMPORTER,
    otel::OTLP,
    mini_swe_agent::IMPORTER,
    swe_agent::IMPORTER,
    openhands::EVALUATION,
    openhands::EVENTS,
    tau_bench::TAU,
    tau_bench::TAU2,
    mast::IMPORTER,
    agent_error_bench::IMPORTER,
    who_and_when::IMPORTER,
    otel::OPENINFERENCE,
    otel::GENAI,
    claude_stream::IMPORTER,
    native::IMPORTER,
    provider_messages::LINES,
    provider_messages::ANTHROPIC,
    provider_messages::RESPONSES,
    provider_messages::CHAT,
];

/// ReasonBlocks format, the fallback for unrecognised input.
pub static NATIVE: &Importer = &native::IMPORTER;

/// Returns the first format that matches the start of a file.
pub fn sniff(beginning: &[u8]) -> Option<&'static Importer> {
    let preview = FilePreview::at(beginning);
    IMPORTERS.iter().find(|importer| (importer.sniff)(&preview))
}

/// Returns `true` if a line is a complete JSON document, so that the lines can be parsed independently.
pub fn is_document(line: &[u8]) -> bool {
    std::str::from_utf8(line)
        .is_ok_and(|line| documents::is_whole(line.trim_start_matches('\u{feff}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete() {
        for (at, importer) in IMPORTERS.iter().enumerate() {
            let id = importer.id;
            assert!(
                id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{id}"
            );
            assert!(importer.summary.ends_with('.'), "{id}");
            assert!(IMPORTERS[at + 1..].iter().all(|other| other.id != id), "{id} twice");
            assert!(!(importer.sniff)(&FilePreview::at(b"")), "{id} recognises nothing at all");
            assert!(!(importer.sniff)(&FilePreview::at(b"{}")), "{id} recognises an empty object");
        }
    }

    #[test]
    fn every_row_is_in_the_documentation() {
        let page = include_str!("../../../../docs/transcripts.md");
        let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")).collect();
        let is_unit = |row: &str, unit: Unit| {
            row.trim_end_matches([' ', '|']).ends_with(match unit {
                Unit::Line => "| line",
                Unit::Document => "| document",
                Unit::File => "| whole file",
            })
        };
        for importer in &IMPORTERS {
            let row = rows.iter().find(|row| row.starts_with(&format!("{}`", importer.id)));
            assert!(row.is_some_and(|row| is_unit(row, importer.unit)), "{}", importer.id);
        }
        let formats = rows.iter().filter(|row| !row.starts_with("NaN"));
        assert_eq!(formats.count(), IMPORTERS.len(), "a row without an importer");
    }
}
