//! LangChain's messages, read where they lie: what is new in a conversation as steps, and what an answer says.
//!
//! Both are looked at with every model call, so they are read here and not in Python: an agent's own code has by then
//! driven everything else out of the caches, and every function more that Python must run is fetched anew.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyString};

use crate::answer::Answer;
use crate::step::Step;
use crate::text::utf8;

/// Who wrote a message. It is known by its `type`: asking for its class goes through pydantic's metaclass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Model,
    Person,
    Tool,
    Other,
}

/// Knows how far a conversation was read. Reads each turn once, however long the conversation is.
#[pyclass(frozen)]
pub(crate) struct Follower {
    read: Mutex<Option<Turn>>,
}

/// The turn of the model that was read last.
#[derive(Clone)]
struct Turn {
    at: usize,
    key: Key,
}

/// What a message is known by: its id, or itself where it has none.
#[derive(Clone, PartialEq, Eq)]
enum Key {
    Id(String),
    Itself(usize),
}

#[pymethods]
impl Follower {
    #[new]
    fn new() -> Self {
        Self { read: Mutex::new(None) }
    }

    /// The steps since the last look. At the first look these are the turns since the user spoke last: earlier ones
    /// belong to earlier runs.
    #[pyo3(signature = (messages: "object") -> "list[Step]")]
    fn new_steps<'py>(&self, messages: &Bound<'py, PySequence>) -> PyResult<Bound<'py, PyList>> {
        // Not held while messages are read: that may run Python, and so another thread that waits for it.
        let mut read = self.read()?.clone();
        let begin = unread(read.as_ref(), messages)?;
        let mut new = Vec::new();
        for at in begin..messages.len()? {
            let message = messages.get_item(at)?;
            new.push((at, author(&message)?, message));
        }
        let results = PyDict::new(messages.py());
        for (_, author, message) in &new {
            if *author == Author::Tool {
                results
                    .set_item(message.getattr(intern!(message.py(), "tool_call_id"))?, message)?;
            }
        }
        let steps = PyList::empty(messages.py());
        let mut said: Vec<Bound<'_, PyString>> = Vec::new();
        for (at, author, message) in &new {
            match author {
                Author::Model => {
                    steps_of(message, &results, &joined(&said)?, &steps)?;
                    said.clear();
                    read = Some(Turn { at: *at, key: key(message)? });
                }
                Author::Person => said.push(text_of(message)?),
                Author::Tool | Author::Other => {}
            }
        }
        *self.read()? = read;
        Ok(steps)
    }
}

impl Follower {
    fn read(&self) -> PyResult<MutexGuard<'_, Option<Turn>>> {
        self.read.lock().map_err(|_| PyRuntimeError::new_err("an earlier look failed"))
    }
}

/// What a model answered: a response of LangChain's, or one message. `None` where no message of a model is in it.
#[pyfunction]
#[pyo3(signature = (response: "object"))]
pub(crate) fn answer_of(response: &Bound<'_, PyAny>) -> PyResult<Option<Answer>> {
    let py = response.py();
    let mut messages = response.getattr_opt(intern!(py, "result"))?;
    if messages.is_none()
        && let Some(inner) = response.getattr_opt(intern!(py, "model_response"))?
    {
        messages = inner.getattr_opt(intern!(py, "result"))?;
    }
    let Some(messages) = messages else { return said_by_model(response) };
    for message in messages.try_iter()? {
        let answer = said_by_model(&message?)?;
        if answer.is_some() {
            return Ok(answer);
        }
    }
    Ok(None)
}

fn said_by_model(message: &Bound<'_, PyAny>) -> PyResult<Option<Answer>> {
    let py = message.py();
    if author(message)? != Author::Model {
        return Ok(None);
    }
    let mut tool_calls = Vec::new();
    for call in message.getattr(intern!(py, "tool_calls"))?.try_iter()? {
        let name = call?.get_item(intern!(py, "name"))?;
        tool_calls.push(utf8(name.cast()?)?.into_owned());
    }
    let words =
        if tool_calls.is_empty() { Some(utf8(&text_of(message)?)?.into_owned()) } else { None };
    let [tokens, input_tokens, output_tokens, cache_read_tokens] = tokens(message)?;
    Ok(Some(Answer { tool_calls, words, tokens, input_tokens, output_tokens, cache_read_tokens }))
}

/// What has no such name is no message and is passed over.
fn author(message: &Bound<'_, PyAny>) -> PyResult<Author> {
    let kind = message.getattr_opt(intern!(message.py(), "type"))?;
    let Some(Ok(kind)) = kind.map(Bound::cast_into::<PyString>) else { return Ok(Author::Other) };
    Ok(match kind.to_str()? {
        "ai" | "AIMessageChunk" => Author::Model,
        "human" | "HumanMessageChunk" => Author::Person,
        "tool" | "ToolMessageChunk" => Author::Tool,
        _ => Author::Other,
    })
}

/// Where the new messages begin: after the turn read last, which mostly is where it was.
fn unread(read: Option<&Turn>, messages: &Bound<'_, PySequence>) -> PyResult<usize> {
    let count = messages.len()?;
    if let Some(read) = read
        && read.at < count
        && key(&messages.get_item(read.at)?)? == read.key
    {
        return Ok(read.at + 1);
    }
    let mut newest = None;
    for at in (0..count).rev() {
        let message = messages.get_item(at)?;
        match (author(&message)?, read) {
            (Author::Model, Some(read)) if key(&message)? == read.key => return Ok(at + 1),
            (Author::Model, Some(_)) => newest = newest.or(Some(at)),
            (Author::Person, None) => return Ok(at + 1),
            _ => {}
        }
    }
    // The turn read last is gone: the history was rewritten, and only the newest turn is surely new.
    Ok(if read.is_none() { 0 } else { newest.unwrap_or(count) })
}

fn key(message: &Bound<'_, PyAny>) -> PyResult<Key> {
    let id = message.getattr_opt(intern!(message.py(), "id"))?;
    Ok(match id.map(Bound::cast_into::<PyString>) {
        Some(Ok(id)) if !id.is_empty()? => Key::Id(utf8(&id)?.into_owned()),
        _ => Key::Itself(message.as_ptr() as usize),
    })
}

/// One step a tool call; what was thought, and what the user said before, stand with the first of them.
fn steps_of(
    turn: &Bound<'_, PyAny>,
    results: &Bound<'_, PyDict>,
    said: &str,
    steps: &Bound<'_, PyList>,
) -> PyResult<()> {
    let py = turn.py();
    let text = text_of(turn)?;
    let mut thought = utf8(&text)?.into_owned();
    let mut said = said.to_owned();
    let calls = turn.getattr(intern!(py, "tool_calls"))?;
    if calls.len()? == 0 {
        return steps.append(Step::spoken(thought, said));
    }
    for call in calls.try_iter()? {
        let call = call?;
        let name = call.get_item(intern!(py, "name"))?;
        let args = call.get_item(intern!(py, "args"))?;
        let (observation, is_error) = match results.get_item(call.get_item(intern!(py, "id"))?)? {
            Some(result) => {
                let status = result.getattr(intern!(py, "status"))?;
                (Some(text_of(&result)?), status.eq(intern!(py, "error"))?)
            }
            None => (None, false),
        };
        let (thought, said) = (std::mem::take(&mut thought), std::mem::take(&mut said));
        let step = Step::spoken(thought, said);
        steps.append(step.acted(name.cast()?, &args, observation.as_ref(), is_error)?)?;
    }
    Ok(())
}

/// The text of a message; where it is nothing but text, without going through its blocks.
fn text_of<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let content = message.getattr(intern!(message.py(), "content"))?;
    match content.cast_into::<PyString>() {
        Ok(text) => Ok(text),
        Err(_) => message.getattr(intern!(message.py(), "text"))?.str(),
    }
}

fn joined(said: &[Bound<'_, PyString>]) -> PyResult<String> {
    let mut text = String::new();
    for (at, part) in said.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "\n" });
        text.push_str(&utf8(part)?);
    }
    Ok(text)
}

/// What the call cost, as far as it says so: in all, read, written, read from the cache.
fn tokens(message: &Bound<'_, PyAny>) -> PyResult<[u64; 4]> {
    let py = message.py();
    let usage = message.getattr(intern!(py, "usage_metadata"))?;
    let Ok(usage) = usage.cast::<PyDict>() else { return Ok([0; 4]) };
    let number = |from: &Bound<'_, PyDict>, name: &Bound<'_, PyString>| -> PyResult<u64> {
        // A count that is missing, or that no run can have, counts for nothing.
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
