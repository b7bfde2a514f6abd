//! Renders runs as HTML with inline SVG charts. No IO.
//!
//! `from_store` and `from_transcript` build a `RunView`; `rb report` writes it to one file, the dashboard puts it into
//! its pages. Every text of a run goes through `text::EscapedText`, which escapes it, makes invisible characters
//! visible and truncates it; the templates escape everything else.

/// API reference from an OpenAPI document.
pub mod api_docs;
/// Bars by day, and a difference with its interval.
pub mod charts;
/// Content security policies.
pub mod csp;
/// View of a stored run.
mod from_store;
/// View of a recorded run, assessed by the engine.
mod from_transcript;
/// Data that the renderer needs of a run.
mod model;
/// Standalone page.
mod page;
/// One run.
mod run;
/// List of runs, worst first, with a comparison of agents and models.
mod run_list;
/// List of steps.
mod steps;
/// Escaping and formatting of texts and numbers.
pub mod text;
/// Chart of a run, one column per step.
mod timeline;

pub use from_store::{StateReplay, from_store};
pub use from_transcript::from_transcript;
pub use maud::Markup;
pub use model::{EvidenceView, RunView, StepView};
pub use page::page;
pub use run::{outcome, run, run_with, title};
pub use run_list::{Listed, bar, run_list};

/// Style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests;
