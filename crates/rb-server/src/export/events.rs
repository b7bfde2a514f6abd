//! From a step to its events: one for each monitor that fired, one for each piece of guidance.
//!
//! A finding is the convention's `gen_ai.evaluation.result`; what the convention has no name for stands under ours.

use rb_engine::monitors;
use rb_store::StepRow;
use rb_wire::otlp::{Event, Value};

const FIRED: &str = "gen_ai.evaluation.result";
const SAID: &str = "reasonblocks.guidance";

pub(super) fn of(row: &StepRow) -> Vec<Event> {
    let fired = row.fired.iter().map(|monitor| fired(row, monitor));
    let sources = row.injection_sources.iter().map(String::as_str).chain(std::iter::repeat(""));
    let said = row.injections.iter().zip(sources).map(|(text, source)| said(row, text, source));
    fired.chain(said).collect()
}

fn fired(row: &StepRow, monitor: &str) -> Event {
    let seen = row.evidence.iter().find(|seen| seen.monitor == monitor);
    let score = seen.map(|seen| seen.score).or_else(|| row.scores.get(monitor).copied());
    let why = seen.map(|seen| seen.text.clone()).unwrap_or_default();
    let mut attributes = about(row);
    attributes.extend([
        ("gen_ai.evaluation.name", Value::Text(monitor.to_owned())),
        ("gen_ai.evaluation.score.value", Value::Double(score.unwrap_or_default())),
        ("gen_ai.evaluation.score.label", Value::Text("fired".to_owned())),
        ("gen_ai.evaluation.explanation", Value::Text(why.clone())),
        ("reasonblocks.monitor", Value::Text(monitor.to_owned())),
    ]);
    if let Some(spec) = monitors::find(monitor) {
        let failure_type = Value::Text(spec.failure_type.to_owned());
        attributes.push(("reasonblocks.failure_type", failure_type));
    }
    if let Some(seen) = seen {
        let steps = seen.steps.iter().map(|step| i64::from(*step)).collect();
        attributes.push(("reasonblocks.evidence.steps", Value::Ints(steps)));
    }
    let body = if why.is_empty() { format!("`{monitor}` fired") } else { why };
    Event { name: FIRED, at_ms: at_ms(row), body, attributes }
}

fn said(row: &StepRow, text: &str, source: &str) -> Event {
    let mut attributes = about(row);
    attributes.push(("reasonblocks.guidance.source", Value::Text(source.to_owned())));
    Event { name: SAID, at_ms: at_ms(row), body: text.to_owned(), attributes }
}

/// Which step of which run.
fn about(row: &StepRow) -> Vec<(&'static str, Value)> {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut all = vec![
        ("reasonblocks.run.id", text(&row.run.run_id)),
        ("reasonblocks.org.id", text(&row.run.org)),
        ("reasonblocks.step.index", Value::Int(i64::from(row.step_index))),
        ("reasonblocks.score", Value::Double(row.total_score)),
    ];
    if !row.model.is_empty() {
        all.push(("gen_ai.request.model", text(&row.model)));
    }
    all
}

fn at_ms(row: &StepRow) -> u64 {
    u64::try_from(row.at_ms).unwrap_or_default()
}
