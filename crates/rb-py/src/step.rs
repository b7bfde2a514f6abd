//! What the agent did, given by Python.

use std::fmt::Write as _;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString};
use rb_engine::step::{Input, Step as EngineStep};

use crate::text::utf8;

/// One turn of the agent: what it thought, what it did, and what came back.
///
/// `action_input` may be a text or anything else that JSON can hold; the form is kept.
#[pyclass(frozen)]
#[derive(Clone)]
pub(crate) struct Step {
    /// The model's visible text.
    #[pyo3(get)]
    thought: String,
    /// The tool that was called; `None` when there was no call.
    #[pyo3(get)]
    action: Option<String>,
    input: Argument,
    /// What came back from the tool.
    #[pyo3(get)]
    observation: String,
    /// The host says that the call failed.
    #[pyo3(get)]
    is_error: bool,
    /// What a person said to the agent just before.
    #[pyo3(get)]
    user_input: String,
}

#[derive(Clone)]
enum Argument {
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
            input: argument(action_input)?,
            observation: text(observation)?,
            is_error,
            user_input: text(user_input)?,
        })
    }

    /// The tool's argument as text; empty when there is none.
    #[getter]
    fn action_input(&self) -> &str {
        self.input.as_engine().text()
    }

    fn __repr__(&self) -> String {
        let shown = |text: &str| text.chars().take(40).collect::<String>();
        let (thought, action) = (shown(&self.thought), self.action.as_deref().unwrap_or_default());
        format!("Step(thought={thought:?}, action={action:?}, is_error={})", self.is_error)
    }
}

impl Step {
    /// Words without a call.
    pub(crate) fn spoken(thought: String, user_input: String) -> Self {
        Self {
            thought,
            action: None,
            input: Argument::None,
            observation: String::new(),
            is_error: false,
            user_input,
        }
    }

    /// The same with a call and what came back.
    pub(crate) fn acted(
        self,
        tool: &Bound<'_, PyString>,
        input: &Bound<'_, PyAny>,
        observation: Option<&Bound<'_, PyString>>,
        is_error: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            action: Some(text(Some(tool))?).filter(|tool| !tool.is_empty()),
            input: argument(Some(input))?,
            observation: text(observation)?,
            is_error,
            ..self
        })
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
}

fn text(text: Option<&Bound<'_, PyString>>) -> PyResult<String> {
    text.map_or_else(|| Ok(String::new()), |text| Ok(utf8(text)?.into_owned()))
}

/// A text stays one; anything else becomes JSON: plain values here, others by Python's own `json`, and what that cannot
/// hold becomes its text.
fn argument(value: Option<&Bound<'_, PyAny>>) -> PyResult<Argument> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Argument::None) };
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Argument::Text(utf8(text)?.into_owned()));
    }
    let mut json = String::new();
    if write_plain(value, &mut json, DEPTH_MAX).is_some() {
        return Ok(Argument::Json(json));
    }
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item(intern!(py, "default"), py.get_type::<PyString>())?;
    options.set_item(intern!(py, "ensure_ascii"), false)?;
    options.set_item(intern!(py, "skipkeys"), true)?;
    let dumps = py.import(intern!(py, "json"))?.getattr(intern!(py, "dumps"))?;
    let json = match dumps.call((value,), Some(&options)) {
        Ok(json) => json.cast_into::<PyString>()?,
        Err(_) => value.str()?, // it holds itself, or has no text of its own
    };
    Ok(Argument::Json(utf8(&json)?.into_owned()))
}

/// Deeper values are left to Python, which knows when one holds itself.
const DEPTH_MAX: usize = 16;

/// Writes dictionaries, lists, texts, whole numbers and constants as `json.dumps` does; `None` for anything else.
fn write_plain(value: &Bound<'_, PyAny>, json: &mut String, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if let Ok(text) = value.cast_exact::<PyString>() {
        quote(text.to_str().ok()?, json);
    } else if let Ok(dict) = value.cast_exact::<PyDict>() {
        json.push('{');
        for (at, (name, value)) in dict.iter().enumerate() {
            json.push_str(if at == 0 { "" } else { ", " });
            quote(name.cast_exact::<PyString>().ok()?.to_str().ok()?, json);
            json.push_str(": ");
            write_plain(&value, json, depth)?;
        }
        json.push('}');
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        json.push('[');
        for (at, value) in list.iter().enumerate() {
            json.push_str(if at == 0 { "" } else { ", " });
            write_plain(&value, json, depth)?;
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

fn quote(text: &str, json: &mut String) {
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
                let _ = write!(json, "\\u{:04x}", u32::from(control)); // a String takes everything
            }
            other => json.push(other),
        }
    }
    json.push('"');
}
