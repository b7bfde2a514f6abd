//! Conversion of pattern fields from a server reply or a file to patterns of the engine.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rb_engine::guidance::render::{Family, render_pattern as render};
use rb_engine::guidance::{Pattern, PatternBody, Retrieved, Tier, TierResult};

use crate::text::utf8;

/// Renders a pattern for the family of the given model.
#[pyfunction]
#[pyo3(signature = (tier, model, fields: "dict[str, object]"))]
pub(crate) fn render_pattern(
    tier: &str,
    model: &str,
    fields: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let tier = Tier::from_name(tier).ok_or_else(|| {
        PyValueError::new_err(format!("unknown tier: `{tier}`; use e1, e2 or e3"))
    })?;
    let body = body(tier, fields)?;
    Ok(render(&body, Family::of_model(model)))
}

/// Converts lookup results by tier. A missing tier was not queried; a value that is not a list is a failed lookup.
pub(crate) fn retrieved(answers: Option<&Bound<'_, PyDict>>) -> PyResult<Retrieved> {
    let mut found = Retrieved::NONE;
    let Some(answers) = answers else { return Ok(found) };
    for (tier, place) in
        [(Tier::E1, &mut found.e1), (Tier::E2, &mut found.e2), (Tier::E3, &mut found.e3)]
    {
        *place = match answers.get_item(tier.name())? {
            None => TierResult::NotAsked,
            Some(answer) => match answer.cast::<PyList>() {
                Ok(items) => TierResult::Answered(
                    items.iter().filter_map(|item| pattern(tier, &item)).collect(),
                ),
                Err(_) => TierResult::Failed,
            },
        };
    }
    Ok(found)
}

/// Converts one result; returns `None` for a malformed one, so that the others can still be used.
fn pattern(tier: Tier, item: &Bound<'_, PyAny>) -> Option<Pattern> {
    let item = item.cast::<PyDict>().ok()?;
    let py = item.py();
    let fields = item.get_item(intern!(py, "fields")).ok()??;
    let fields = fields.cast::<PyDict>().ok()?;
    let id = field(item, &["pattern_id"]).or_else(|| field(fields, &["pattern_id"]));
    Some(Pattern { id: id.unwrap_or_default(), body: body(tier, fields).ok()? })
}

/// Reads the fields under their wire names or their documented names.
fn body(tier: Tier, fields: &Bound<'_, PyDict>) -> PyResult<PatternBody> {
    let required = |names: &[&str]| {
        field(fields, names).ok_or_else(|| {
            let (tier, name) = (tier.name(), names.join("` or `"));
            PyValueError::new_err(format!("missing field of an {tier} pattern: `{name}`"))
        })
    };
    Ok(match tier {
        Tier::E1 => PatternBody::E1 {
            situation: required(&["task_context_embedding_text", "situation"])?,
            observation: field(fields, &["observation", "dead_ends"]).unwrap_or_default(),
            recommended_action: required(&["recommended_action", "unlock"])?,
        },
        Tier::E2 => PatternBody::E2 {
            trajectory: trajectory(fields)
                .map_or_else(|| required(&["trajectory_description"]), Ok)?,
            diagnosis: field(fields, &["diagnosis"]).unwrap_or_default(),
            intervention: required(&["intervention"])?,
            anti_pattern: field(fields, &["anti_pattern"]).unwrap_or_default(),
        },
        Tier::E3 => PatternBody::E3 {
            instruction: required(&["instruction"])?,
            meta_reasoning_prompt: field(fields, &["meta_reasoning_prompt"]),
        },
    })
}

/// Reads the trajectory description, which is either inside or next to `trigger_state`.
fn trajectory(fields: &Bound<'_, PyDict>) -> Option<String> {
    let trigger = fields.get_item("trigger_state").ok().flatten();
    let inside = trigger.as_ref().and_then(|trigger| trigger.cast::<PyDict>().ok());
    inside.and_then(|trigger| field(trigger, &["trajectory_description"]))
}

/// Returns the first of these fields that is a non-blank text; a list of texts is joined.
fn field(fields: &Bound<'_, PyDict>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let value = fields.get_item(name).ok()??;
        let texts: Vec<Bound<'_, PyAny>> = match value.cast::<PyList>() {
            Ok(list) => list.iter().collect(),
            Err(_) => vec![value],
        };
        let texts: Option<Vec<String>> = texts
            .iter()
            .map(|text| Some(utf8(text.cast::<PyString>().ok()?).ok()?.into_owned()))
            .collect();
        texts.map(|texts| texts.join("; ")).filter(|text| !text.trim().is_empty())
    })
}
