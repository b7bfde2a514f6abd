//! One step of an agent.

use std::fmt::Write as _;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString};
use rb_engine::step::{Input, Step as EngineStep};

use crate::text::utf8;

/// One step of an agent: a thought, a tool call and its result.
///
/// `action_input` is a string or any JSON-serialisable value.
#[pyclass(frozen)]
#[derive(Clone)]
pub(crate) struct Step {
    /// Visible text and reasoning of the model.
    #[pyo3(get)]
    thought: String,
    /// Name of the called tool; `None` without a call.
    #[pyo3(get)]
    action: Option<String>,
    input: Argument,
    /// Result of the tool call.
    #[pyo3(get)]
    observation: String,
    /// True if the tool call failed.
    #[pyo3(get)]
    is_error: bool,
    /// User message that preceded the step.
    #[pyo3(get)]
    user_input: String,
}

/// Argument of a tool call.
#[derive(Clone)]
pub(crate) enum Argument {
    None,
    Text(String),
    Json(String),
}

#[pymethods]
impl Step {
    #[new]
    #[pyo3(signature = (thought = None, action = None, action_input: "object" = None, observation = None, is_error = false, user_input = None))]
    fn new(
        thought: Option<&Bound<'_, PyString>>,
        action: Option<&Bound<'_, PyString>>,
        action_input: Option<&Bound<'_, PyAny>>,
        observation: Option<&Bound<'_, PyString>>,
        is_error: bool,
        user_input: Option<&Bound<'_, PyString>>,
    ) -> PyResult<Self> {
        Ok(Self {
            thought: text(thought)?,
            action: Some(text(action)?).filter(|tool| !tool.is_empty()),
            input: Argument::from_python(action_input)?,
            observation: text(observation)?,
            is_error,
            user_input: text(user_input)?,
        })
    }

    /// Argument of the tool call as text; empty without a call.
    #[getter]
    fn action_input(&self) -> &str {
        self.input.as_engine().text()
    }

    /// True if the argument was not a string; `action_input` is then its JSON.
    #[getter]
    fn is_structured(&self) -> bool {
        matches!(self.input, Argument::Json(_))
    }

    fn __repr__(&self) -> String {
        let shown = |text: &str| text.chars().take(40).collect::<String>();
        let (thought, action) = (shown(&self.thought), self.action.as_deref().unwrap_or_default());
        format!("Step(thought={thought:?}, action={action:?}, is_error={})", self.is_error)
    }
}

impl Step {
    /// Creates a step without a tool call.
    pub(crate) fn thought(thought: String, user_input: String) -> Self {
        Self {
            thought,
            action: None,
            input: Argument::None,
            observation: String::new(),
            is_error: false,
            user_input,
        }
    }

    /// Adds a tool call and its result.
    pub(crate) fn with_call(
        self,
        tool: String,
        input: Argument,
        observation: String,
        is_error: bool,
    ) -> Self {
        let action = Some(tool).filter(|tool| !tool.is_empty());
        Self { action, input, observation, is_error, ..self }
    }

    /// Returns true for a step without thought, call and user message.
    pub(crate) fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.action.is_none() && self.user_input.is_empty()
    }

    pub(crate) fn as_engine(&self) -> EngineStep<'_> {
        let base =
            EngineStep { user_input: &self.user_input, ..EngineStep::thought(&self.thought) };
        base.with_action(self.action.as_deref().unwrap_or_default(), self.input.as_engine())
            .with_observation(&self.observation)
            .with_error(self.is_error)
    }
}

impl Argument {
    fn as_engine(&self) -> Input<'_> {
        match self {
            Self::None => Input::None,
            Self::Text(text) => Input::Text(text),
            Self::Json(json) => Input::Structured(json),
        }
    }

    /// Keeps a string and converts any other value to JSON. Values that `write_json` does not support are converted by
    /// Python's `json`, or to their `str()` if that fails.
    pub(crate) fn from_python(value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Self::None) };
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self::Text(utf8(text)?.into_owned()));
        }
        let mut json = String::new();
        if write_json(value, &mut json, MAX_DEPTH).is_some() {
            return Ok(Self::Json(json));
        }
        let py = value.py();
        let options = PyDict::new(py);
        options.set_item(intern!(py, "default"), py.get_type::<PyString>())?;
        options.set_item(intern!(py, "ensure_ascii"), false)?;
        options.set_item(intern!(py, "skipkeys"), true)?;
        let dumps = py.import(intern!(py, "json"))?.getattr(intern!(py, "dumps"))?;
        let json = match dumps.call((value,), Some(&options)) {
            Ok(json) => json.cast_into::<PyString>()?,
            Err(_) => value.str()?, // a cyclic value, or one whose `str()` fails
        };
        Ok(Self::Json(utf8(&json)?.into_owned()))
    }
}

fn text(text: Option<&Bound<'_, PyString>>) -> PyResult<String> {
    text.map_or_else(|| Ok(String::new()), |text| Ok(utf8(text)?.into_owned()))
}

/// Maximum nesting depth of `write_json`. Deeper values go to Python's `json`, which detects cycles.
const MAX_DEPTH: usize = 16;

/// Writes dictionaries, lists, strings, integers and constants as `json.dumps` does; returns `None` for other values.
fn write_json(value: &Bound<'_, PyAny>, json: &mut String, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if let Ok(text) = value.cast_exact::<PyString>() {
        write_quoted(text.to_str().ok()?, json);
    } else if let Ok(dict) = value.cast_exact::<PyDict>() {
        json.push('{');
        for (at, (name, value)) in dict.iter().enumerate() {
            json.push_str(if at == 0 { "" } else { ", " });
            write_quoted(name.cast_exact::<PyString>().ok()?.to_str().ok()?, json);
            json.push_str(": ");
            write_json(&value, json, depth)?;
        }
        json.push('}');
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        json.push('[');
        for (at, value) in list.iter().enumerate() {
            json.push_str(if at == 0 { "" } else { ", " });
            write_json(&value, json, depth)?;
        }
        json.push(']');
    } else if let Ok(truth) = value.cast_exact::<PyBool>() {
        json.push_str(if truth.is_true() { "true" } else { "false" });
    } else if value.is_none() {
        json.push_str("null");
    } else {
        json.push_str(&value.cast_exact::<PyInt>().ok()?.extract::<i64>().ok()?.to_string());
    }
    Some(())
}

fn write_quoted(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(control)); // writing to a String cannot fail
            }
            other => json.push(other),
        }
    }
    json.push('"');
}
