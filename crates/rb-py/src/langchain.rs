//! Conversion of LangChain messages to steps and responses.
//!
//! Both run before and after every model call. They are implemented here instead of in Python because CPU caches are
//! cold between two calls, and each additional Python function costs more than its instructions.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyString};

use crate::response::Response;
use crate::step::Step;
use crate::text::utf8;
use crate::turn::{Call, Turn};

/// Author of a message, from its `type` attribute: `isinstance` goes through pydantic's metaclass and is slow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Model,
    User,
    Tool,
    Other,
}

/// Read position in a growing list of messages. Returns each turn once.
#[pyclass(frozen)]
pub(crate) struct ConversationCursor {
    position: Mutex<Option<Position>>,
}

/// The last model message that was read.
#[derive(Clone)]
struct Position {
    index: usize,
    key: Key,
}

/// Identity of a message: its id, or its address if it has none.
#[derive(Clone, PartialEq, Eq)]
enum Key {
    Id(String),
    Address(usize),
}

#[pymethods]
impl ConversationCursor {
    #[new]
    fn new() -> Self {
        Self { position: Mutex::new(None) }
    }

    /// Returns the steps since the previous call. The first call starts after the last user message: earlier turns
    /// belong to earlier runs.
    #[pyo3(signature = (messages: "object") -> "list[Step]")]
    fn new_steps(&self, messages: &Bound<'_, PySequence>) -> PyResult<Vec<Step>> {
        // The lock is not held while messages are read: attribute access can run Python code, which can switch to
        // another thread that waits for the lock.
        let mut position = self.lock()?.clone();
        let start = unread_start(position.as_ref(), messages)?;
        let steps = read_steps(messages, start, &mut position)?;
        *self.lock()? = position;
        Ok(steps)
    }

    /// Returns the steps of the whole conversation.
    #[staticmethod]
    #[pyo3(signature = (messages: "object") -> "list[Step]")]
    fn all_steps(messages: &Bound<'_, PySequence>) -> PyResult<Vec<Step>> {
        read_steps(messages, 0, &mut None)
    }
}

impl ConversationCursor {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Position>>> {
        self.position.lock().map_err(|_| PyRuntimeError::new_err("lock poisoned"))
    }
}

/// Reads the messages from `start` on and moves `position` to the last model message.
fn read_steps(
    messages: &Bound<'_, PySequence>,
    start: usize,
    position: &mut Option<Position>,
) -> PyResult<Vec<Step>> {
    let py = messages.py();
    let mut new = Vec::new();
    for index in start..messages.len()? {
        let message = messages.get_item(index)?;
        new.push((index, author(&message)?, message));
    }
    let results = PyDict::new(py);
    for (_, author, message) in &new {
        if *author == Author::Tool {
            results.set_item(message.getattr(intern!(py, "tool_call_id"))?, message)?;
        }
    }
    let mut steps = Vec::new();
    let mut user_input = String::new();
    for (index, author, message) in &new {
        match author {
            Author::Model => {
                let turn = parse_turn(message)?;
                let user_input = std::mem::take(&mut user_input);
                steps.extend(turn.to_steps(user_input, |call| tool_result(&results, call))?);
                *position = Some(Position { index: *index, key: key(message)? });
            }
            Author::User => {
                user_input.push_str(if user_input.is_empty() { "" } else { "\n" });
                user_input.push_str(&utf8(&text_of(message)?)?);
            }
            Author::Tool | Author::Other => {}
        }
    }
    Ok(steps)
}

/// Returns the response in a LangChain `ModelResponse` or message; `None` without a model message.
#[pyfunction]
#[pyo3(signature = (response: "object"))]
pub(crate) fn parse_response(response: &Bound<'_, PyAny>) -> PyResult<Option<Response>> {
    let py = response.py();
    let mut messages = response.getattr_opt(intern!(py, "result"))?;
    if messages.is_none()
        && let Some(inner) = response.getattr_opt(intern!(py, "model_response"))?
    {
        messages = inner.getattr_opt(intern!(py, "result"))?;
    }
    let Some(messages) = messages else { return parse_message(response) };
    for message in messages.try_iter()? {
        let response = parse_message(&message?)?;
        if response.is_some() {
            return Ok(response);
        }
    }
    Ok(None)
}

fn parse_message(message: &Bound<'_, PyAny>) -> PyResult<Option<Response>> {
    let py = message.py();
    if author(message)? != Author::Model {
        return Ok(None);
    }
    let mut tool_calls = Vec::new();
    for call in message.getattr(intern!(py, "tool_calls"))?.try_iter()? {
        let name = call?.get_item(intern!(py, "name"))?;
        tool_calls.push(utf8(name.cast()?)?.into_owned());
    }
    let final_text =
        if tool_calls.is_empty() { Some(utf8(&text_of(message)?)?.into_owned()) } else { None };
    let [tokens, input_tokens, output_tokens, cache_read_tokens] = token_counts(message)?;
    Ok(Some(Response {
        tool_calls,
        final_text,
        tokens,
        input_tokens,
        output_tokens,
        cache_read_tokens,
    }))
}

/// Returns `Other` for values that are not messages.
fn author(message: &Bound<'_, PyAny>) -> PyResult<Author> {
    let kind = message.getattr_opt(intern!(message.py(), "type"))?;
    let Some(Ok(kind)) = kind.map(Bound::cast_into::<PyString>) else { return Ok(Author::Other) };
    Ok(match kind.to_str()? {
        "ai" | "AIMessageChunk" => Author::Model,
        "human" | "HumanMessageChunk" => Author::User,
        "tool" | "ToolMessageChunk" => Author::Tool,
        _ => Author::Other,
    })
}

/// Returns the index of the first unread message.
fn unread_start(position: Option<&Position>, messages: &Bound<'_, PySequence>) -> PyResult<usize> {
    let count = messages.len()?;
    if let Some(position) = position
        && position.index < count
        && key(&messages.get_item(position.index)?)? == position.key
    {
        return Ok(position.index + 1);
    }
    let mut newest = None;
    for index in (0..count).rev() {
        let message = messages.get_item(index)?;
        match (author(&message)?, position) {
            (Author::Model, Some(position)) if key(&message)? == position.key => {
                return Ok(index + 1);
            }
            (Author::Model, Some(_)) => newest = newest.or(Some(index)),
            (Author::User, None) => return Ok(index + 1),
            _ => {}
        }
    }
    // The last read turn is missing, so the history was rewritten; only the newest turn is certainly new.
    Ok(if position.is_none() { 0 } else { newest.unwrap_or(count) })
}

fn key(message: &Bound<'_, PyAny>) -> PyResult<Key> {
    let id = message.getattr_opt(intern!(message.py(), "id"))?;
    Ok(match id.map(Bound::cast_into::<PyString>) {
        Some(Ok(id)) if !id.is_empty()? => Key::Id(utf8(&id)?.into_owned()),
        _ => Key::Address(message.as_ptr() as usize),
    })
}

fn parse_turn(message: &Bound<'_, PyAny>) -> PyResult<Turn> {
    let py = message.py();
    let mut calls = Vec::new();
    for call in message.getattr(intern!(py, "tool_calls"))?.try_iter()? {
        let call = call?;
        let (id, name) = (call.get_item(intern!(py, "id"))?, call.get_item(intern!(py, "name"))?);
        calls.push(Call::new(id.cast().ok(), name.cast()?, &call.get_item(intern!(py, "args"))?)?);
    }
    Ok(Turn::new(thought_of(message)?, calls))
}

fn tool_result(results: &Bound<'_, PyDict>, call: &Call) -> PyResult<Option<(String, bool)>> {
    let Some(result) = results.get_item(call.id())? else { return Ok(None) };
    let py = results.py();
    let is_error = result.getattr(intern!(py, "status"))?.eq(intern!(py, "error"))?;
    Ok(Some((utf8(&text_of(&result)?)?.into_owned(), is_error)))
}

/// Returns the text of a message, without reading its blocks if the content is a plain string.
fn text_of<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let content = message.getattr(intern!(message.py(), "content"))?;
    match content.cast_into::<PyString>() {
        Ok(text) => Ok(text),
        Err(_) => message.getattr(intern!(message.py(), "text"))?.str(),
    }
}

/// Returns the reasoning and the text of a model message.
fn thought_of(message: &Bound<'_, PyAny>) -> PyResult<String> {
    let content = message.getattr(intern!(message.py(), "content"))?;
    let mut parts = Vec::new();
    if let Ok(blocks) = content.cast::<PyList>() {
        for block in blocks {
            if let Ok(block) = block.cast::<PyDict>() {
                read_reasoning(block, &mut parts)?;
            }
        }
    }
    let text = text_of(message)?;
    parts.push(utf8(&text)?.into_owned());
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("\n\n"))
}

/// Appends the text of a reasoning block: `thinking` of Anthropic, `reasoning` of LangChain, or the `summary` of OpenAI.
fn read_reasoning(block: &Bound<'_, PyDict>, parts: &mut Vec<String>) -> PyResult<()> {
    let py = block.py();
    let text = |from: &Bound<'_, PyDict>, name: &str| -> PyResult<Option<String>> {
        let value = from.get_item(name)?;
        let text = value.as_ref().and_then(|value| value.cast::<PyString>().ok());
        text.map(|text| utf8(text).map(std::borrow::Cow::into_owned)).transpose()
    };
    match text(block, "type")?.as_deref() {
        Some("thinking") => parts.extend(text(block, "thinking")?),
        Some("reasoning") => {
            parts.extend(text(block, "reasoning")?);
            let summary = block.get_item(intern!(py, "summary"))?;
            let summary = summary.as_ref().and_then(|summary| summary.cast::<PyList>().ok());
            for item in summary.into_iter().flatten() {
                if let Ok(item) = item.cast::<PyDict>() {
                    parts.extend(text(item, "text")?);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns total, input, output and cache-read tokens; 0 for missing or invalid counts.
fn token_counts(message: &Bound<'_, PyAny>) -> PyResult<[u64; 4]> {
    let py = message.py();
    let usage = message.getattr(intern!(py, "usage_metadata"))?;
    let Ok(usage) = usage.cast::<PyDict>() else { return Ok([0; 4]) };
    let number = |from: &Bound<'_, PyDict>, name: &Bound<'_, PyString>| -> PyResult<u64> {
        Ok(from.get_item(name)?.and_then(|count| count.extract().ok()).unwrap_or(0))
    };
    let cached = match usage.get_item(intern!(py, "input_token_details"))? {
        Some(details) => match details.cast::<PyDict>() {
            Ok(details) => number(details, intern!(py, "cache_read"))?,
            Err(_) => 0,
        },
        None => 0,
    };
    Ok([
        number(usage, intern!(py, "total_tokens"))?,
        number(usage, intern!(py, "input_tokens"))?,
        number(usage, intern!(py, "output_tokens"))?,
        cached,
    ])
}
