//! Events of a step: one per fired monitor, one per guidance fragment.
//!
//! A fired monitor is `gen_ai.evaluation.result` of the semantic conventions; other attributes have the prefix
//! `reasonblocks`.

use rb_engine::monitors;
use rb_store::StepRow;
use rb_wire::otlp::{Event, Value};

const FIRED_EVENT: &str = "gen_ai.evaluation.result";
const GUIDANCE_EVENT: &str = "reasonblocks.guidance";

pub(super) fn from_row(row: &StepRow) -> Vec<Event> {
    let fired = row.fired.iter().map(|monitor| fired_event(row, monitor));
    let sources = row.injection_sources.iter().map(String::as_str).chain(std::iter::repeat(""));
    let guidance =
        row.injections.iter().zip(sources).map(|(text, source)| guidance_event(row, text, source));
    fired.chain(guidance).collect()
}

fn fired_event(row: &StepRow, monitor: &str) -> Event {
    let evidence = row.evidence.iter().find(|evidence| evidence.monitor == monitor);
    let score =
        evidence.map(|evidence| evidence.score).or_else(|| row.scores.get(monitor).copied());
    let text = evidence.map(|evidence| evidence.text.clone()).unwrap_or_default();
    let mut attributes = step_attributes(row);
    attributes.extend([
        ("gen_ai.evaluation.name", Value::Text(monitor.to_owned())),
        ("gen_ai.evaluation.score.value", Value::Double(score.unwrap_or_default())),
        ("gen_ai.evaluation.score.label", Value::Text("fired".to_owned())),
        ("gen_ai.evaluation.explanation", Value::Text(text.clone())),
        ("reasonblocks.monitor", Value::Text(monitor.to_owned())),
    ]);
    if let Some(spec) = monitors::find(monitor) {
        let failure_type = Value::Text(spec.failure_type.to_owned());
        attributes.push(("reasonblocks.failure_type", failure_type));
    }
    if let Some(evidence) = evidence {
        let steps = evidence.steps.iter().map(|step| i64::from(*step)).collect();
        attributes.push(("reasonblocks.evidence.steps", Value::Ints(steps)));
    }
    let body = if text.is_empty() { format!("`{monitor}` fired") } else { text };
    Event { name: FIRED_EVENT, at_ms: at_ms(row), body, attributes }
}

fn guidance_event(row: &StepRow, text: &str, source: &str) -> Event {
    let mut attributes = step_attributes(row);
    attributes.push(("reasonblocks.guidance.source", Value::Text(source.to_owned())));
    Event { name: GUIDANCE_EVENT, at_ms: at_ms(row), body: text.to_owned(), attributes }
}

/// Attributes of run and step.
fn step_attributes(row: &StepRow) -> Vec<(&'static str, Value)> {
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
