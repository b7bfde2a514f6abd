//! Recorded runs of agents: one importer a format, one row each in `IMPORTERS`.
//!
//! An importer never fails whole. It gives the runs it could read and a `Diagnostic` for everything it
//! could not, so one bad line costs that line. Adding a format is a file here and a row in the table.

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
/// Our own format: one run a line.
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
/// Who&When.
mod who_and_when;

// What they share.
/// Attributes of spans.
mod attributes;
/// What was wrong.
mod diagnostic;
/// The documents of a text.
mod documents;
/// Messages wherever they are.
mod find_messages;
/// Values of JSON.
mod json;
/// What is known beyond the fields of a run.
mod labels;
/// JSON where it stands.
mod lazy_json;
/// Messages of every dialect.
mod messages;
/// Messages that Python printed.
mod python_repr;
/// What attributes mean.
mod semconv;
/// The beginning of a file.
mod sniff;
/// From spans to runs.
mod spans;
/// From a conversation to steps.
mod step_builder;
/// Times.
mod time;
/// Tokens.
mod usage;

pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use sniff::FilePreview;

use crate::model::Run;

/// What an importer found in a piece of a transcript.
pub type Imported<'a> = (Vec<Run<'a>>, Vec<Diagnostic>);

/// How much of a transcript an importer must see at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Each line stands for itself; a long file can be read in pieces of whole lines.
    Line,
    /// Each JSON document stands for itself: the same, if the first line holds a whole one.
    Document,
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
    pub sniff: fn(&FilePreview<'_>) -> bool,
    /// Reads one or more units. Lines in complaints are counted from 1 within what was handed over.
    pub parse: for<'a> fn(&'a [u8]) -> Imported<'a>,
}

/// Every format, the most telling sniff first.
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

/// Our own format, for what nobody recognises.
pub static NATIVE: &Importer = &native::IMPORTER;

/// The first format that recognises the beginning of a file.
pub fn sniff(beginning: &[u8]) -> Option<&'static Importer> {
    let preview = FilePreview::at(beginning);
    IMPORTERS.iter().find(|importer| (importer.sniff)(&preview))
}

/// Whether a line is one whole JSON document, so that the lines of its file stand for themselves.
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
