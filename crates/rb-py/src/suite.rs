//! Evaluation of the heuristic suite over a whole run, compatible with the public package 0.1.0.

use std::sync::{Arc, LazyLock};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step};

use crate::text::{utf8, utf8_or_empty};

/// Returns the difficulty of a thought, from 0 (easy) to 1 (hard).
#[pyfunction]
pub(crate) fn score_step(text: &Bound<'_, PyString>) -> PyResult<f64> {
    Ok(rb_engine::analysis::difficulty::difficulty(&utf8(text)?))
}

static DEFAULT: LazyLock<Arc<Engine>> = LazyLock::new(|| {
    let config = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic));
    Arc::new(config.check().unwrap_or_default())
});

/// Returns the scores of `streak`, `call_count`, `edit_revert`, `test_repeat`, `diversity` and `hedge` after the last
/// step.
#[pyfunction]
#[pyo3(signature = (steps: "object", *, cap = 5, budget = 20, window = 5, min_total = 8))]
pub(crate) fn heuristic_scores(
    steps: &Bound<'_, PyAny>,
    cap: u32,
    budget: u32,
    window: u32,
    min_total: u32,
) -> PyResult<(f64, f64, f64, f64, f64, f64)> {
    let rules = if (cap, budget, window, min_total) == (5, 20, 5, 8) {
        Arc::clone(&DEFAULT)
    } else {
        let mut config = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic));
        config.monitors.streak.cap = cap;
        config.monitors.call_count.budget = budget;
        config.monitors.diversity.window = window;
        config.monitors.diversity.minimum = min_total;
        Arc::new(config.check().map_err(|error| PyValueError::new_err(error.to_string()))?)
    };
    let mut monitors = MonitorSet::new(&rules, "");
    let mut latest = [0.0; 6];
    for (at, step) in steps.try_iter()?.enumerate() {
        let assessment = observe(&mut monitors, &step?).map_err(|error| at_step(at, &error))?;
        for (score, reading) in latest.iter_mut().zip(&assessment.readings) {
            *score = reading.score;
        }
    }
    let [streak, call_count, edit_revert, test_repeat, diversity, hedge] = latest;
    Ok((streak, call_count, edit_revert, test_repeat, diversity, hedge))
}

fn at_step(at: usize, error: &PyErr) -> PyErr {
    PyTypeError::new_err(format!("step {at}: {error}"))
}

/// Observes one step dictionary; missing keys and values of another type count as empty, as in the public package.
fn observe<'py>(
    monitors: &mut MonitorSet,
    step: &Bound<'py, PyAny>,
) -> PyResult<rb_engine::run::Assessment> {
    let py = step.py();
    let get = |key: &Bound<'py, PyString>| get(step, key);
    let action = match get(intern!(py, "action"))? {
        Some(action) if action.is_truthy()? => Some(action),
        Some(_) | None => match get(intern!(py, "tool_calls"))? {
            Some(calls) if calls.is_truthy()? => Some(calls.get_item(0)?),
            Some(_) | None => None,
        },
    };
    let action = match action {
        Some(action) if action.is_truthy()? => Some(action),
        Some(_) | None => None,
    };
    if let Some(action) = &action
        && !action.is_instance_of::<PyString>()
    {
        let kind = action.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "`action` is of type `{kind}`; pass the name of the tool as a string"
        )));
    }
    let tool = utf8_or_empty(action.as_ref())?;
    let (input, thought) = (get(intern!(py, "action_input"))?, get(intern!(py, "thought"))?);
    let observation = get(intern!(py, "observation"))?;
    let is_error = match get(intern!(py, "is_error"))? {
        Some(value) => value.is_truthy()?,
        None => false,
    };
    let (input, thought) = (utf8_or_empty(input.as_ref())?, utf8_or_empty(thought.as_ref())?);
    let observation = utf8_or_empty(observation.as_ref())?;
    let step = Step::thought(&thought)
        .with_action(&tool, Input::Text(&input))
        .with_observation(&observation)
        .with_error(is_error);
    Ok(monitors.observe(&step))
}

/// Reads a key of a dictionary or of any object with a `get` method.
fn get<'py>(
    step: &Bound<'py, PyAny>,
    key: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match step.cast::<PyDict>() {
        Ok(step) => step.get_item(key),
        Err(_) => step.call_method1(intern!(step.py(), "get"), (key,)).map(Some),
    }
}
