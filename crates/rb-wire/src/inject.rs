//! Where guidance goes in a request, and how it stays there.
//!
//! **Tail.** A fragment stands behind the last words of the user or of a tool, where it changes nothing that the provider
//! has cached. From then on it is *planted*: every later request of the conversation gets the same bytes at the same
//! place, so that each request begins with the one before. Its place is the link of the message it follows: while the
//! history up to there is the same, it is put back; where the history was edited, it is gone with it.
//!
//! **System.** The text joins the system prompt of one request only, which throws away the cached history twice.
//!
//! Never between a call and its answer, never into a block that is not ours, never near a cache marker.

use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::{MessageHash, Role};
use crate::json::{Value, quoted};
use crate::request::{Message, ParsedRequest};

/// A fragment with its place in a conversation. What is stored of steering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The message it follows, counted from 0.
    pub message: usize,
    /// The link of that message.
    pub hash: MessageHash,
    /// In which form.
    pub channel: Channel,
    /// The text, to the byte.
    pub text: String,
}

/// What is to be done to a request.
#[derive(Debug, Clone)]
pub struct InjectedTail<'a> {
    /// The edits; none if the request goes out as it came.
    pub edits: BodyEdits<'a>,
    /// The new fragment's place, to be kept once the provider has taken the request.
    pub injection: Option<Injection>,
    /// Which of the fragments that were planted before found their place no more.
    pub dropped: Vec<usize>,
}

/// Puts back what was planted earlier and plants a new fragment, in the first of the channels that has a place for it.
///
/// A message gets one fragment at most. Where the provider keeps the conversation, it keeps our part of it too, so
/// nothing is put back.
pub fn inject_tail<'a>(
    request: &ParsedRequest<'a>,
    earlier: &[Injection],
    fragment: Option<&str>,
    channels: &[Channel],
) -> InjectedTail<'a> {
    let mut edits = BodyEdits::new(request.body);
    let (mut dropped, mut taken) = (Vec::new(), Vec::new());
    for (at, injection) in earlier.iter().enumerate() {
        if request.is_server_side_history() {
            break;
        }
        let is_same =
            request.messages.get(injection.message).is_some_and(|m| m.hash == injection.hash);
        let is_free = !taken.contains(&injection.message);
        if is_same && is_free && fits(request, injection.channel, injection.message) {
            taken.push(injection.message);
            insert(request, injection.channel, injection.message, &injection.text, &mut edits);
        } else {
            dropped.push(at);
        }
    }
    let place = fragment.and_then(|_| {
        channels.iter().find_map(|channel| {
            let message = candidate(request, *channel)?;
            let is_free = !taken.contains(&message);
            (is_free && fits(request, *channel, message)).then_some((*channel, message))
        })
    });
    let injection = fragment.zip(place).map(|(text, (channel, message))| {
        insert(request, channel, message, text, &mut edits);
        Injection { message, hash: request.messages[message].hash, channel, text: text.to_owned() }
    });
    InjectedTail { edits, injection, dropped }
}

fn is_anthropic(request: &ParsedRequest<'_>) -> bool {
    request.dialect.system == Some("system")
}

/// The message that a new fragment would follow.
fn candidate(request: &ParsedRequest<'_>, channel: Channel) -> Option<usize> {
    let last = request.messages.len().checked_sub(1)?;
    // A block goes into the user's message, also where the client has put a message of the system behind it.
    let is_behind = channel == Channel::TextBlock && request.messages[last].role == Role::System;
    if is_behind { last.checked_sub(1) } else { Some(last) }
}

/// Whether a fragment may follow that message in that form.
fn fits(request: &ParsedRequest<'_>, channel: Channel, at: usize) -> bool {
    let Some(message) = request.messages.get(at) else { return false };
    let next = request.messages.get(at + 1).map(|next| next.role);
    match channel {
        Channel::TextBlock => {
            is_anthropic(request)
                && message.role == Role::User
                && matches!(next, None | Some(Role::Assistant | Role::System))
                && content(request, message).is_some_and(|c| c.is_string() || c.is_list())
        }
        Channel::SystemMessage | Channel::ScopedSystemMessage if is_anthropic(request) => {
            message.role == Role::User && matches!(next, None | Some(Role::Assistant))
        }
        Channel::ScopedSystemMessage => false,
        Channel::SystemMessage | Channel::DeveloperMessage | Channel::UserMessage => {
            !is_anthropic(request)
                && matches!(message.role, Role::User | Role::Tool | Role::System)
                && next != Some(Role::Tool)
        }
    }
}

fn content<'a>(request: &ParsedRequest<'a>, message: &Message) -> Option<Value<'a>> {
    Value::at(request.body, &message.span).get("content")
}

fn insert(
    request: &ParsedRequest<'_>,
    channel: Channel,
    at: usize,
    text: &str,
    edits: &mut BodyEdits<'_>,
) {
    let Some(message) = request.messages.get(at) else { return };
    if channel == Channel::TextBlock {
        if let Some(content) = content(request, message) {
            append_block(content, &text_block(text), edits);
        }
        return;
    }
    let ours = message_of(request, channel, text);
    if request.list.is_some_and(Value::is_string) {
        // A single text stands for a message of the user.
        edits.insert(message.span.start, r#"[{"role":"user","content":"#);
        edits.insert(message.span.end, format!("}},{ours}]"));
    } else {
        edits.insert(message.span.end, format!(",{ours}"));
    }
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

/// Adds a block to a content that is a list, or a text that is made one.
fn append_block(content: Value<'_>, block: &str, edits: &mut BodyEdits<'_>) {
    let span = content.span();
    if content.is_string() {
        edits.insert(span.start, r#"[{"type":"text","text":"#);
        edits.insert(span.end, format!("}},{block}]"));
        return;
    }
    match content.items().last() {
        Some(last) => edits.insert(last.span().end, format!(",{block}")),
        None => edits.insert(span.start + 1, block),
    }
}

fn message_of(request: &ParsedRequest<'_>, channel: Channel, text: &str) -> String {
    let text = quoted(text);
    let role = match channel {
        Channel::SystemMessage | Channel::ScopedSystemMessage => "system",
        Channel::DeveloperMessage => "developer",
        Channel::UserMessage | Channel::TextBlock => "user",
    };
    if channel == Channel::ScopedSystemMessage {
        return format!(r#"{{"role":"system","content":{text},"clear_at":"next_user_message"}}"#);
    }
    if request.dialect.messages_field == "input" {
        return format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":{text}}}]}}"#
        );
    }
    format!(r#"{{"role":"{role}","content":{text}}}"#)
}

/// Providers allow so many cache markers in a request.
const CACHE_MARKERS_MAX: usize = 4;

/// Puts a text into the system prompt of this request alone.
pub fn inject_system<'a>(request: &ParsedRequest<'a>, text: &str) -> BodyEdits<'a> {
    let mut edits = BodyEdits::new(request.body);
    let present = request.system.filter(|value| !value.is_null());
    match (request.dialect.system, present) {
        (Some(field), None) => {
            let value = if is_anthropic(request) {
                format!("[{}]", text_block(text))
            } else {
                quoted(text)
            };
            match request.system {
                Some(null) => edits.replace(null.span(), value),
                None => insert_field(request, field, &value, &mut edits),
            }
        }
        (Some(_), Some(base)) if is_anthropic(request) => {
            extend_blocks(request, base, text, &mut edits);
        }
        (Some(_), Some(base)) => extend_text(base, text, &mut edits),
        (None, _) => extend_first_message(request, text, &mut edits),
    }
    edits
}

/// The base in a block with a cache marker, so that it stays cached while the block behind it changes. A base that is a
/// list already is the client's affair: it only gets the block.
fn extend_blocks(
    request: &ParsedRequest<'_>,
    base: Value<'_>,
    text: &str,
    edits: &mut BodyEdits<'_>,
) {
    let block = text_block(text);
    if base.is_string() && base.raw_str().is_empty() {
        edits.replace(base.span(), format!("[{block}]"));
    } else if base.is_string() {
        let markers = memchr::memmem::find_iter(request.body, br#""cache_control""#).count();
        let has_room = markers < CACHE_MARKERS_MAX;
        let marker = if has_room { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
        edits.insert(base.span().start, r#"[{"type":"text","text":"#);
        edits.insert(base.span().end, format!("{marker}}},{block}]"));
    } else if base.is_list() {
        append_block(base, &block, edits);
    }
}

/// A text, an empty line, and ours.
fn extend_text(base: Value<'_>, text: &str, edits: &mut BodyEdits<'_>) {
    if !base.is_string() {
        return;
    }
    let gap = if base.raw_str().is_empty() { "" } else { "\n\n" };
    let ours = quoted(&format!("{gap}{text}"));
    edits.insert(base.span().end - 1, &ours[1..ours.len() - 1]);
}

fn extend_first_message(request: &ParsedRequest<'_>, text: &str, edits: &mut BodyEdits<'_>) {
    let Some(list) = request.list.filter(|list| list.is_list()) else { return };
    let first = request.messages.first();
    let base = first.filter(|first| first.role == Role::System).and_then(|m| content(request, m));
    match base {
        Some(base) if base.is_string() => extend_text(base, text, edits),
        Some(base) if base.is_list() => append_block(base, &text_block(text), edits),
        Some(_) | None => {
            let comma = if first.is_some() { "," } else { "" };
            let ours = message_of(request, Channel::SystemMessage, text);
            edits.insert(list.span().start + 1, format!("{ours}{comma}"));
        }
    }
}

/// A field at the beginning of the body.
fn insert_field(request: &ParsedRequest<'_>, field: &str, value: &str, edits: &mut BodyEdits<'_>) {
    let body = request.body;
    let Some(open) = body.iter().position(|byte| *byte == b'{') else { return };
    let is_empty = body[open + 1..].trim_ascii_start().first() == Some(&b'}');
    let comma = if is_empty { "" } else { "," };
    edits.insert(open + 1, format!("{}:{value}{comma}", quoted(field)));
}

/// Asks for another model; nothing where the request names none.
pub fn set_model<'a>(request: &ParsedRequest<'a>, name: &str) -> BodyEdits<'a> {
    let mut edits = BodyEdits::new(request.body);
    if let Some(value) = request.model.filter(|value| value.is_string()) {
        edits.replace(value.span(), quoted(name));
    }
    edits
}

#[cfg(test)]
mod tests;
