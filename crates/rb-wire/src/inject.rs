//! Injection of guidance into requests.
//!
//! **Tail.** A fragment goes behind the last message of the user or of a tool, where it leaves the provider's cached
//! prefix unchanged. Every later request of the conversation gets the same bytes at the same position, so that each
//! request has the previous one as its prefix. The position is the hash of the preceding message: the injection is
//! repeated while the history up to there is the same, and dropped if the history was edited before it.
//!
//! **System.** The text is appended to the system prompt of one request, which invalidates the cached history twice.
//!
//! An injection never separates a call from its result, and never changes a block of the client or a cache marker.

use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::{MessageHash, Role};
use crate::dialects::{Position, SystemPrompt};
use crate::json::Value;
use crate::request::ParsedRequest;

/// A fragment and its position in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Index of the preceding message.
    pub message: usize,
    /// Hash of the preceding message.
    pub hash: MessageHash,
    /// Form.
    pub channel: Channel,
    /// Text, byte for byte.
    pub text: String,
}

/// Edits of a request for its injections.
#[derive(Debug, Clone)]
pub struct InjectedTail<'a> {
    /// Edits; none if the request is forwarded as received.
    pub edits: BodyEdits<'a>,
    /// The new injection, to be stored once the provider has accepted the request.
    pub injection: Option<Injection>,
}

/// Repeats earlier injections and inserts a new fragment through the first channel that has a position for it.
///
/// A message is followed by at most one injection. Nothing is repeated if the provider stores the conversation, because
/// it stores the injections as well.
pub fn inject_tail<'a>(
    request: &ParsedRequest<'a>,
    earlier: &[Injection],
    fragment: Option<&str>,
    channels: &[Channel],
) -> InjectedTail<'a> {
    let mut edits = BodyEdits::new(request.body);
    let mut taken = Vec::new();
    let earlier = if request.is_server_side_history() { &[] } else { earlier };
    for injection in earlier {
        let Some(position) = position(request, injection.message) else { continue };
        let is_same = request.messages[injection.message].hash == injection.hash;
        let is_free = !taken.contains(&injection.message);
        if is_same && is_free && request.dialect.accepts(injection.channel, &position) {
            taken.push(injection.message);
            request.dialect.inject(injection.channel, &position, &injection.text, &mut edits);
        }
    }
    let injection = fragment.and_then(|text| {
        channels.iter().find_map(|&channel| {
            let message = candidate(request, channel)?;
            let position = position(request, message)?;
            if taken.contains(&message) || !request.dialect.accepts(channel, &position) {
                return None;
            }
            request.dialect.inject(channel, &position, text, &mut edits);
            let hash = request.messages[message].hash;
            Some(Injection { message, hash, channel, text: text.to_owned() })
        })
    });
    InjectedTail { edits, injection }
}

/// Returns the message that a new injection would follow.
fn candidate(request: &ParsedRequest<'_>, channel: Channel) -> Option<usize> {
    let last = request.messages.len().checked_sub(1)?;
    // A block goes into the user's message even if the client appended a system message.
    let is_behind = channel == Channel::TextBlock && request.messages[last].role == Role::System;
    if is_behind { last.checked_sub(1) } else { Some(last) }
}

fn position<'a>(request: &ParsedRequest<'a>, at: usize) -> Option<Position<'a>> {
    let message = request.messages.get(at)?;
    Some(Position {
        message: request.value_of(message),
        role: message.role,
        next: request.messages.get(at + 1).map(|next| next.role),
        is_only_value: request.list.is_some_and(Value::is_string),
    })
}

/// Appends a text to the system prompt of this request.
pub fn inject_system<'a>(request: &ParsedRequest<'a>, text: &str) -> BodyEdits<'a> {
    let mut edits = BodyEdits::new(request.body);
    let first = request.messages.first();
    let prompt = SystemPrompt {
        body: request.body,
        field: request.fields.system,
        messages: request.list,
        first_message: first.map(|message| (message.role, request.value_of(message))),
    };
    request.dialect.inject_system(&prompt, text, &mut edits);
    edits
}

/// Requests another model, in the body or in `target`, which is path and query of the request. Does nothing if the
/// request names no model.
pub fn set_model<'a>(
    request: &ParsedRequest<'a>,
    name: &str,
    target: &mut String,
) -> BodyEdits<'a> {
    let mut edits = BodyEdits::new(request.body);
    request.dialect.set_model(request.fields.model, name, target, &mut edits);
    edits
}

#[cfg(test)]
mod tests;
