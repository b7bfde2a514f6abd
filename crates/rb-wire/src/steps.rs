//! Steps of a live conversation.
//!
//! A *turn* is the output of the model up to the next input. Each of its calls is a step with its result; the first has
//! the thought and the preceding user text. A turn without calls is a step once the user has replied. An unfinished turn,
//! with a call without a result or a user text without a reply, is carried to the next request.
//!
//! **No duplicates.** Clients rewrite the history: they compact it, clear old results or remove a reminder. The messages
//! from the change on are then read again, and steps that were emitted before are skipped: a call is identified by
//! its id, tool and arguments, a thought by its text.

mod response_marks;

pub use response_marks::{marks_of_last_responses, marks_of_response};

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use rapidhash::v3::rapidhash_v3;
use serde::{Deserialize, Serialize};

use crate::conversation_hash::Continuity;
use crate::dialects::Part;
use crate::model::{RunInput, RunStep};
use crate::request::ParsedRequest;
use crate::response::{Response, ToolCall, push};
use crate::text_tool_calls;
use response_marks::OWN_ID_BYTES_MIN;

/// Maximum length of each text of a pending turn, in bytes.
pub const CARRIED_BYTES_MAX: usize = 64 << 10;
/// Maximum number of pending calls.
pub const WAITING_MAX: usize = 128;
/// Number of emitted steps that are remembered.
pub const EMITTED_MAX: usize = 1_024;

/// Unfinished turn at the end of a request. Empty at the start of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingTurn {
    /// User text before the turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_input: String,
    /// Text of the model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thought: String,
    /// Calls without a result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// User text after the turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said_since: String,
    #[serde(rename = "given")]
    emitted: EmittedSteps,
    /// Hash of the first user text of the conversation.
    opening: u64,
    /// Last response, for a request with item references.
    #[serde(skip)]
    reply: Option<Reply>,
}

impl PendingTurn {
    /// Continues with a response. For server-side history, where the next request does not
    /// repeat it.
    #[must_use]
    pub fn with_reply(self, reply: Reply) -> Self {
        Self {
            user_input: self.said_since,
            thought: reply.thought,
            calls: reply.calls,
            said_since: String::new(),
            emitted: self.emitted,
            opening: self.opening,
            reply: None,
        }
    }

    /// Sets the last response. For requests that refer to its items.
    #[must_use]
    pub fn after_reply(self, reply: Option<Reply>) -> Self {
        Self { reply, ..self }
    }
}

/// Text, calls and item ids of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    thought: String,
    calls: Vec<ToolCall>,
    #[serde(default)]
    items: Vec<String>,
}

impl From<&Response> for Reply {
    fn from(answer: &Response) -> Self {
        let (thought, calls) = (answer.thought.clone(), answer.calls.clone());
        Self { thought, calls, items: answer.items.clone() }
    }
}

/// Hashes of the last emitted steps, newest last. 32 bits suffice for a thousand steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct EmittedSteps(VecDeque<u32>);

impl EmittedSteps {
    fn note(&mut self, mark: u32) {
        if self.0.len() == EMITTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(mark);
    }
}

/// New steps of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewSteps<'a> {
    /// Finished steps.
    pub steps: Vec<RunStep<'a>>,
    /// State for the next request.
    pub pending: PendingTurn,
}

/// Returns the steps that a request adds to its conversation.
pub fn advance<'a>(
    request: &ParsedRequest<'a>,
    continuity: Continuity,
    pending: &'a PendingTurn,
) -> NewSteps<'a> {
    match continuity {
        Continuity::First => extract(request, 0, pending),
        Continuity::Retry => NewSteps { steps: Vec::new(), pending: pending.clone() },
        Continuity::Continues { from } => extract(request, from, pending),
        Continuity::Edited { at } => extract_changed(request, at, pending),
        Continuity::Compacted => extract_changed(request, 0, pending),
    }
}

/// Returns the steps of the messages from `from` on, after the pending turn.
pub fn extract<'a>(
    request: &ParsedRequest<'a>,
    from: usize,
    pending: &'a PendingTurn,
) -> NewSteps<'a> {
    let (done, mut next) = fold(request, from, Turn::resume(pending));
    next.opening = if pending.opening == 0 { opening(&done, &next) } else { pending.opening };
    next.emitted.clone_from(&pending.emitted);
    for done in &done {
        next.emitted.note(done.mark);
    }
    NewSteps { steps: done.into_iter().map(|done| done.step).collect(), pending: next }
}

/// Returns the steps of a history that changed at message `at`, without those that were emitted before.
fn extract_changed<'a>(
    request: &ParsedRequest<'a>,
    at: usize,
    pending: &'a PendingTurn,
) -> NewSteps<'a> {
    let turn = Turn { reply: pending.reply.as_ref(), ..Turn::default() };
    let (done, mut next) = fold(request, 0, turn);
    next.opening = opening(&done, &next);
    next.emitted.clone_from(&pending.emitted);
    // Hashes are counted: a step that was emitted three times is new the fourth time.
    let mut known: HashMap<u32, u32> = HashMap::new();
    for mark in &pending.emitted.0 {
        *known.entry(*mark).or_default() += 1;
    }
    let mut steps = Vec::new();
    // The summary at the start of a compacted history is new even if the turn after it is not; the task is not.
    let is_opened_anew = at == 0 && next.opening != pending.opening;
    let mut summary = Cow::Borrowed("");
    for (number, FinishedStep { mut step, mark, message }) in done.into_iter().enumerate() {
        let is_known = known.get_mut(&mark).is_some_and(|left| {
            let is_left = *left > 0;
            *left = left.saturating_sub(1);
            is_left
        });
        if is_known || message < at {
            if number == 0 && is_opened_anew {
                summary = step.user_input;
            }
            continue;
        }
        next.emitted.note(mark);
        step.user_input = prepend(&mut summary, step.user_input);
        steps.push(step);
    }
    let is_open = !next.thought.is_empty() || !next.calls.is_empty();
    let said = if is_open { &mut next.user_input } else { &mut next.said_since };
    *said = truncated(&prepend(&mut summary, Cow::Owned(std::mem::take(said))));
    NewSteps { steps, pending: next }
}

/// Returns the hash of the first user text; 0 if there is none.
fn opening(done: &[FinishedStep<'_>], next: &PendingTurn) -> u64 {
    let begun = if next.user_input.is_empty() { &next.said_since } else { &next.user_input };
    let words: &str = done.first().map_or(begun, |done| &done.step.user_input);
    if words.is_empty() { 0 } else { rapidhash_v3(words.as_bytes()) }
}

/// Moves the first text in front of the second.
fn prepend<'a>(first: &mut Cow<'a, str>, second: Cow<'a, str>) -> Cow<'a, str> {
    let first = std::mem::take(first);
    let texts = [first, second].into_iter().filter(|text| !text.is_empty());
    joined(texts.collect())
}

/// Returns the pending turn of the messages before `at`, for a conversation whose state is lost.
pub fn carry_at(request: &ParsedRequest<'_>, at: usize) -> PendingTurn {
    let mut earlier = request.clone();
    earlier.messages.truncate(at);
    extract(&earlier, 0, &PendingTurn::default()).pending
}

/// Reads the messages from `from` on.
fn fold<'a>(
    request: &ParsedRequest<'a>,
    from: usize,
    mut turn: Turn<'a>,
) -> (Vec<FinishedStep<'a>>, PendingTurn) {
    let (mut done, mut parts) = (Vec::new(), Vec::new());
    for (at, message) in request.messages.iter().enumerate().skip(from) {
        request.read(message, &mut parts);
        let ended = done.len();
        parts.drain(..).for_each(|part| turn.take(part, &mut done));
        for done in &mut done[ended..] {
            done.message = at;
        }
    }
    let ended = done.len();
    let pending = turn.end(&mut done);
    for done in &mut done[ended..] {
        done.message = request.messages.len();
    }
    (done, pending)
}

/// Hashes a text.
#[expect(clippy::cast_possible_truncation, reason = "any half of a hash is a hash")]
fn mark(text: &str) -> u32 {
    rapidhash_v3(text.as_bytes()) as u32
}

/// A finished step with its hash and the index of its last message.
struct FinishedStep<'a> {
    step: RunStep<'a>,
    mark: u32,
    message: usize,
}

#[derive(Default)]
struct Turn<'a> {
    user_input: Vec<Cow<'a, str>>,
    thoughts: Vec<Cow<'a, str>>,
    calls: Vec<Call<'a>>,
    /// User text after the turn, which belongs to the next one.
    said_since: Vec<Cow<'a, str>>,
    /// Last response, for item references.
    reply: Option<&'a Reply>,
}

struct Call<'a> {
    id: Cow<'a, str>,
    /// Text of the model, if the turn has none.
    thought: Cow<'a, str>,
    tool: Cow<'a, str>,
    input: RunInput<'a>,
    answer: Option<(Cow<'a, str>, bool)>,
}

impl Call<'_> {
    fn mark(&self) -> u32 {
        if self.id.len() >= OWN_ID_BYTES_MIN {
            return mark(&self.id); // whether or not the rest of it comes back
        }
        let input: &str = match &self.input {
            RunInput::None => "",
            RunInput::Text(input) | RunInput::Structured(input) => input,
        };
        // The separator is unlikely in any of them.
        mark(&[&self.id, &self.tool, input].join("\u{0}"))
    }
}

impl<'a> Turn<'a> {
    fn resume(pending: &'a PendingTurn) -> Self {
        let texts = |text: &'a str| (!text.is_empty()).then_some(Cow::Borrowed(text));
        let calls = pending.calls.iter().map(|call| Call {
            id: Cow::Borrowed(&call.id),
            thought: Cow::Borrowed(""),
            tool: Cow::Borrowed(&call.tool),
            input: call.run_input(),
            answer: None,
        });
        let calls: Vec<_> = calls.collect();
        let thoughts: Vec<_> = texts(&pending.thought).into_iter().collect();
        let user_input = texts(&pending.user_input).into_iter().collect();
        let said_since = texts(&pending.said_since).into_iter().collect();
        Self { user_input, thoughts, calls, said_since, reply: pending.reply.as_ref() }
    }

    fn take(&mut self, part: Part<'a>, steps: &mut Vec<FinishedStep<'a>>) {
        match part {
            Part::UserText(text) if self.is_text_result(&text) => {}
            Part::UserText(text) => self.said_since.push(text),
            Part::ModelText(text) => {
                self.begin_another_if_over(steps);
                self.thoughts.push(text);
            }
            Part::Call { id, tool, input } => {
                self.begin_another_if_over(steps);
                let thought = Cow::Borrowed("");
                self.calls.push(Call { id, thought, tool, input, answer: None });
            }
            Part::Reference(item) => {
                // Only the first of consecutive references can start a turn.
                if self.is_begun() || !self.said_since.is_empty() {
                    self.begin_another_if_over(steps);
                }
                let reply = self.reply.filter(|reply| reply.calls.is_empty());
                if let Some(reply) = reply
                    && self.thoughts.is_empty()
                    && reply.items.iter().any(|own| *own == item)
                {
                    self.thoughts.push(Cow::Borrowed(&reply.thought));
                }
            }
            Part::Result { id, tool, text, is_error } => {
                let answer = Some((text, is_error));
                if let Some(call) = self.waiting_call(&id, &tool) {
                    call.answer = answer;
                } else {
                    let call = self.recalled(id, tool);
                    self.calls.push(Call { answer, ..call });
                }
            }
        }
    }

    /// Returns the call without a result that has this id. Where the result names its tool, one of the two may lack the
    /// id, and the first call of the tool matches.
    fn waiting_call(&mut self, id: &str, tool: &str) -> Option<&mut Call<'a>> {
        let waiting = || self.calls.iter().enumerate().filter(|(_, call)| call.answer.is_none());
        let is_named = |call: &Call<'a>| !tool.is_empty() && call.tool == tool;
        let lacks_id = |call: &Call<'a>| id.is_empty() || call.id.is_empty();
        let at = waiting()
            .find(|(_, call)| call.id == id && (tool.is_empty() || !id.is_empty()))
            .or_else(|| waiting().find(|(_, call)| is_named(call) && lacks_id(call)))
            .map(|(at, _)| at)?;
        self.calls.get_mut(at)
    }

    /// Returns a call that is not in the request, from the last response if it is there.
    fn recalled(&self, id: Cow<'a, str>, tool: Cow<'a, str>) -> Call<'a> {
        let none = || Cow::Borrowed("");
        let unknown = Call { id, thought: none(), tool, input: RunInput::None, answer: None };
        let Some(reply) = self.reply else { return unknown };
        let Some(at) = reply.calls.iter().position(|call| call.id == unknown.id) else {
            return unknown;
        };
        let is_first = at == 0 && self.thoughts.is_empty();
        Call {
            thought: if is_first { Cow::Borrowed(&reply.thought) } else { none() },
            tool: Cow::Borrowed(&reply.calls[at].tool),
            input: reply.calls[at].run_input(),
            ..unknown
        }
    }

    /// Reads user text as the result of a call that the model wrote in its text.
    fn is_text_result(&mut self, text: &str) -> bool {
        if self.thoughts.is_empty() || !self.calls.is_empty() || self.is_answered() {
            return false;
        }
        let Some((answer, failed)) = text_tool_calls::result(text) else { return false };
        let Some(call) = text_tool_calls::parse(&self.thoughts.join("\n\n")) else { return false };
        self.thoughts = if call.thought.is_empty() { vec![] } else { vec![call.thought.into()] };
        self.calls.push(Call {
            id: Cow::Borrowed(""),
            thought: Cow::Borrowed(""),
            tool: call.tool.into(),
            input: RunInput::Text(call.input.into()),
            answer: Some((answer.to_owned().into(), failed)),
        });
        true
    }

    fn is_begun(&self) -> bool {
        !self.thoughts.is_empty() || !self.calls.is_empty()
    }

    /// Returns whether the turn has a reply, so that the next output of the model is another turn.
    fn is_answered(&self) -> bool {
        !self.said_since.is_empty() || self.calls.iter().any(|call| call.answer.is_some())
    }

    fn begin_another_if_over(&mut self, steps: &mut Vec<FinishedStep<'a>>) {
        if self.is_begun() && !self.is_answered() {
            return;
        }
        let user_input = std::mem::take(&mut self.said_since);
        let next = Self { user_input, reply: self.reply, ..Self::default() };
        std::mem::replace(self, next).close(steps);
    }

    fn close(self, steps: &mut Vec<FinishedStep<'a>>) {
        if !self.is_begun() {
            return;
        }
        let mut first = RunStep {
            user_input: joined(self.user_input),
            thought: joined(self.thoughts),
            ..RunStep::default()
        };
        if self.calls.is_empty() {
            let mark = mark(&first.thought);
            steps.push(FinishedStep { step: first, mark, message: 0 });
            return;
        }
        for call in self.calls {
            let mark = call.mark();
            let (observation, is_error) = call.answer.unwrap_or_default();
            let mut base = std::mem::take(&mut first);
            if base.thought.is_empty() {
                base.thought = call.thought;
            }
            let step =
                RunStep { tool: call.tool, input: call.input, observation, is_error, ..base };
            steps.push(FinishedStep { step, mark, message: 0 });
        }
    }

    /// Closes the turn at the end of the request and returns the pending part.
    fn end(mut self, steps: &mut Vec<FinishedStep<'a>>) -> PendingTurn {
        let waits = self.calls.iter().any(|call| call.answer.is_none());
        let is_over = self.is_begun() && self.is_answered() && !waits;
        if is_over || !self.is_begun() {
            let said = std::mem::take(&mut self.said_since);
            self.close(steps);
            return PendingTurn { said_since: truncated(&joined(said)), ..PendingTurn::default() };
        }
        // A call with a result is a step even if another call of the turn is pending.
        let (done, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.calls).into_iter().partition(|call| call.answer.is_some());
        if !done.is_empty() {
            let turn = Turn { calls: done, ..std::mem::take(&mut self) };
            self.said_since.clone_from(&turn.said_since);
            turn.close(steps);
        }
        let calls = open.iter().take(WAITING_MAX);
        PendingTurn {
            user_input: truncated(&joined(self.user_input)),
            thought: truncated(&joined(self.thoughts)),
            calls: calls.map(|call| ToolCall::new(&call.id, &call.tool, &call.input)).collect(),
            said_since: truncated(&joined(self.said_since)),
            ..PendingTurn::default()
        }
    }
}

fn joined<'a>(texts: Vec<Cow<'a, str>>) -> Cow<'a, str> {
    match <[Cow<'a, str>; 1]>::try_from(texts) {
        Ok([only]) => only,
        Err(several) => Cow::Owned(several.join("\n\n")),
    }
}

fn truncated(text: &str) -> String {
    let mut cut = String::new();
    push(&mut cut, text, CARRIED_BYTES_MAX);
    cut
}

#[cfg(test)]
mod tests;
