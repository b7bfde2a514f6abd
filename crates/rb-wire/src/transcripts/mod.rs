//! Recorded runs of agents: one importer a format, one row each in `IMPORTERS`.
//!
//! An importer never fails whole. It gives the runs it could read and a `Complaint` for everything it
//! could not, so one bad line costs that line. Adding a format is a file here and a row in the table.

/// AgentErrorBench.
mod agent_error_bench;
/// Harbor's interchange format.
mod atif;
/// Bare messages of OpenAI and Anthropic.
mod chat;
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
/// OpenHands events and evaluations.
mod openhands;
/// OpenTelemetry: OTLP, GenAI and OpenInference.
mod otel;
/// Our own format: one run a line.
pub mod runs;
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
mod complaint;
/// The documents of a text.
mod desk;
/// Code between fences.
pub(crate) mod fenced;
/// What attributes mean.
mod genai;
/// The beginning of a file.
mod glance;
/// Values of JSON.
mod json;
/// What is known beyond the fields of a run.
mod labels;
/// Messages of every dialect.
mod messages;
/// Messages that Python printed.
mod python;
/// What comes out.
mod run;
/// JSON where it stands.
mod scan;
/// Messages wherever they are.
mod search;
/// From spans to runs.
mod spans;
/// Times.
mod time;
/// From a conversation to steps.
mod turns;
/// Tokens.
mod usage;

pub use complaint::{Complaint, Trouble};
pub use glance::Glance;
pub use run::{Run, RunInput, RunStep, Usage};

/// What an importer found in a piece of a transcript.
pub type Found<'a> = (Vec<Run<'a>>, Vec<Complaint>);

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
    pub sniff: fn(&Glance<'_>) -> bool,
    /// Reads one or more units. Lines in complaints are counted from 1 within what was handed over.
    pub parse: for<'a> fn(&'a [u8]) -> Found<'a>,
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
    runs::IMPORTER,
    chat::LINES,
    chat::ANTHROPIC,
    chat::RESPONSES,
    chat::CHAT,
];

/// Our own format, for what nobody recognises.
pub static OWN: &Importer = &runs::IMPORTER;

/// The first format that recognises the beginning of a file.
pub fn sniff(beginning: &[u8]) -> Option<&'static Importer> {
    let glance = Glance::at(beginning);
    IMPORTERS.iter().find(|importer| (importer.sniff)(&glance))
}

/// Whether a line is one whole JSON document, so that the lines of its file stand for themselves.
pub fn is_document(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| desk::is_whole(line.trim_start_matches('\u{feff}')))
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
            assert!(!(importer.sniff)(&Glance::at(b"")), "{id} recognises nothing at all");
            assert!(!(importer.sniff)(&Glance::at(b"{}")), "{id} recognises an empty object");
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
