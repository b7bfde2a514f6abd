//! What the agent did, given by Python.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
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
        let text = |text: Option<&Bound<'_, PyString>>| -> PyResult<String> {
            text.map_or_else(|| Ok(String::new()), |text| Ok(utf8(text)?.into_owned()))
        };
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

/// A text stays one; anything else becomes JSON, and what JSON cannot hold becomes its text.
fn argument(value: Option<&Bound<'_, PyAny>>) -> PyResult<Argument> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Argument::None) };
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Argument::Text(utf8(text)?.into_owned()));
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
