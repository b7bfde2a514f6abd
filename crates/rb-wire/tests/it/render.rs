//! Readable text of imported runs: one line per run and per step.

use std::fmt::Write as _;

use rb_wire::model::{RecordedUsage, Run, RunInput, RunStep};
use rb_wire::transcripts::Imported;

/// Formats the complete result of an importer.
pub(crate) fn render((runs, diagnostics): &Imported<'_>, width: usize) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let mark = if diagnostic.is_loss() { '!' } else { '~' };
        writeln!(text, "{mark} {diagnostic}").expect("a string takes anything");
    }
    for run in runs {
        writeln!(text, "{}", run_line(run, width)).expect("as above");
        for step in &run.steps {
            writeln!(text, "  {}", step_line(step, width)).expect("as above");
        }
    }
    text
}

fn run_line(run: &Run<'_>, width: usize) -> String {
    let texts = [
        ("", &run.run_id),
        ("session", &run.session_id),
        ("parent", &run.parent_id),
        ("set", &run.dataset),
        ("agent", &run.agent),
        ("model", &run.model),
        ("outcome", &run.outcome),
        ("labels", &run.labels),
        ("task", &run.task),
    ];
    let mut line = "run".to_owned();
    for (name, value) in texts {
        if let Some(value) = value {
            let gap = if name.is_empty() { "" } else { " " };
            write!(line, " {name}{gap}{:?}", cut(value, width)).expect("as above");
        }
    }
    if let (Some(started), Some(ended)) = (run.started_ms, run.ended_ms) {
        write!(line, " at {started} +{}", ended.saturating_sub(started)).expect("as above");
    }
    line + &spent(run.usage, run.cost_usd)
}

fn step_line(step: &RunStep<'_>, width: usize) -> String {
    let mut line = String::new();
    for (name, text) in [("user ", &step.user_input), ("", &step.thought)] {
        if !text.is_empty() {
            write!(line, "{name}{:?} ", cut(text, width)).expect("as above");
        }
    }
    let input = match &step.input {
        RunInput::None => String::new(),
        RunInput::Text(text) => format!(" {:?}", cut(text, width)),
        RunInput::Structured(json) => format!(" {}", cut(json, width)),
    };
    if !step.tool.is_empty() {
        write!(line, "-> {}{input} ", step.tool).expect("as above");
    }
    if !step.observation.is_empty() {
        write!(line, "<- {:?} ", cut(&step.observation, width)).expect("as above");
    }
    if step.is_error {
        line.push_str("ERROR ");
    }
    for (name, text) in [("by", &step.agent), ("model", &step.model)] {
        if let Some(text) = text {
            write!(line, "{name} {text} ").expect("as above");
        }
    }
    if let Some(at) = step.at_ms {
        write!(line, "at {at} ").expect("as above");
    }
    (line.trim_end().to_owned() + &spent(step.usage, step.cost_usd)).trim_start().to_owned()
}

fn spent(usage: RecordedUsage, cost_usd: Option<f64>) -> String {
    let mut text = String::new();
    let counts = [
        ("in", usage.input_tokens),
        ("out", usage.output_tokens),
        ("read", usage.cache_read_tokens),
        ("write", usage.cache_write_tokens),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            write!(text, " {name} {count}").expect("as above");
        }
    }
    if let Some(cost) = cost_usd {
        write!(text, " ${cost}").expect("as above");
    }
    text
}

fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
