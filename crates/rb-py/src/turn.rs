//! One model turn and the steps it results in: the definition of a step for every Python integration.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::step::{Argument, Step};
use crate::text::utf8;

/// A model response whose tool calls wait for their results.
///
/// `calls` holds a tuple `(call_id, tool, argument)` for each tool call.
#[pyclass(frozen)]
pub(crate) struct Turn {
    text: String,
    calls: Vec<Call>,
}

/// A tool call; the id is empty if the provider sent none.
pub(crate) struct Call {
    id: String,
    tool: String,
    argument: Argument,
}

/// Text of a tool result, and whether the tool reported an error.
type ToolResult = (String, bool);

#[pymethods]
impl Turn {
    #[new]
    #[pyo3(signature = (text = None, calls: "list[tuple[str, str, object]]" = vec![]))]
    fn from_python(
        text: Option<&Bound<'_, PyString>>,
        calls: Vec<Bound<'_, PyTuple>>,
    ) -> PyResult<Self> {
        let calls = calls.into_iter().map(|call| {
            let (id, tool) = (call.get_item(0)?, call.get_item(1)?);
            Call::new(id.cast().ok(), tool.cast()?, &call.get_item(2)?)
        });
        let text = text.map(utf8).transpose()?.unwrap_or_default().into_owned();
        Ok(Self::new(text, calls.collect::<PyResult<_>>()?))
    }

    /// Text of the response.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Names of the called tools.
    #[getter]
    fn tools(&self) -> Vec<&str> {
        self.calls.iter().map(|call| call.tool.as_str()).collect()
    }

    /// Returns one step per tool call, or one step for a response without calls.
    ///
    /// `results` maps a call id to the text of its result and whether it is an error. The text of the response and
    /// `user_input` belong to the first step.
    #[pyo3(signature = (results: "dict[str, tuple[str, bool]] | None" = None, user_input = None) -> "list[Step]")]
    fn steps(
        &self,
        results: Option<&Bound<'_, PyDict>>,
        user_input: Option<&Bound<'_, PyString>>,
    ) -> PyResult<Vec<Step>> {
        let result = |call: &Call| -> PyResult<Option<ToolResult>> {
            let Some(result) = results.map(|results| results.get_item(&call.id)).transpose()?
            else {
                return Ok(None);
            };
            let Some(result) = result else { return Ok(None) };
            let (text, is_error) = (result.get_item(0)?, result.get_item(1)?);
            Ok(Some((utf8(text.cast()?)?.into_owned(), is_error.is_truthy()?)))
        };
        let user_input = user_input.map(utf8).transpose()?.unwrap_or_default().into_owned();
        self.to_steps(user_input, result)
    }

    fn __repr__(&self) -> String {
        format!("Turn(text={:?}, tools={:?})", self.text, self.tools())
    }
}

impl Call {
    pub(crate) fn new(
        id: Option<&Bound<'_, PyString>>,
        tool: &Bound<'_, PyString>,
        argument: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            id: id.map(utf8).transpose()?.unwrap_or_default().into_owned(),
            tool: utf8(tool)?.into_owned(),
            argument: Argument::from_python(Some(argument))?,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Turn {
    pub(crate) fn new(text: String, calls: Vec<Call>) -> Self {
        Self { text, calls }
    }

    pub(crate) fn to_steps(
        &self,
        user_input: String,
        result: impl Fn(&Call) -> PyResult<Option<ToolResult>>,
    ) -> PyResult<Vec<Step>> {
        let mut first = Step::thought(self.text.clone(), user_input);
        if self.calls.is_empty() {
            return Ok(if first.is_empty() { Vec::new() } else { vec![first] });
        }
        let mut steps = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let (observation, is_error) = result(call)?.unwrap_or_default();
            let step = std::mem::replace(&mut first, Step::thought(String::new(), String::new()));
            let argument = call.argument.clone();
            steps.push(step.with_call(call.tool.clone(), argument, observation, is_error));
        }
        Ok(steps)
    }
}
