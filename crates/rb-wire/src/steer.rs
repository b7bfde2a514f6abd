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

use crate::chain::{Link, Role};
use crate::chat::{Chat, Message};
use crate::json::{Value, quoted};
use crate::splice::Splices;

/// The form in which a fragment stands in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// A message of the system between the others.
    SystemMessage,
    /// The same, shown to the model only until the user speaks again; needs a beta header.
    ScopedSystemMessage,
    /// A message of the developer.
    DeveloperMessage,
    /// A message of the user.
    UserMessage,
    /// One more text block at the end of the user's last message.
    TextBlock,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 5] = [
        Self::SystemMessage,
        Self::ScopedSystemMessage,
        Self::DeveloperMessage,
        Self::UserMessage,
        Self::TextBlock,
    ];

    /// Stable name: stored, shown and configured by this.
    pub fn id(self) -> &'static str {
        match self {
            Self::SystemMessage => "system-message",
            Self::ScopedSystemMessage => "scoped-system-message",
            Self::DeveloperMessage => "developer-message",
            Self::UserMessage => "user-message",
            Self::TextBlock => "text-block",
        }
    }

    /// The channel of that name.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.id() == id)
    }

    /// What must be in the header `anthropic-beta` for it.
    pub fn beta(self) -> Option<&'static str> {
        (self == Self::ScopedSystemMessage).then_some("mid-conversation-system-clear-at-2026-08-21")
    }
}

/// A fragment with its place in a conversation. What is stored of steering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The message it follows, counted from 0.
    pub message: usize,
    /// The link of that message.
    pub link: Link,
    /// In which form.
    pub channel: Channel,
    /// The text, to the byte.
    pub text: String,
}

/// What is to be done to a request.
#[derive(Debug, Clone)]
pub struct Tail<'a> {
    /// The edits; none if the request goes out as it came.
    pub splices: Splices<'a>,
    /// The new fragment's place, to be kept once the provider has taken the request.
    pub planted: Option<Planted>,
    /// Which of the fragments that were planted before found their place no more.
    pub dropped: Vec<usize>,
}

/// Puts back what was planted earlier and plants a new fragment, in the first of the channels that has a place for it.
///
/// A message gets one fragment at most. Where the provider keeps the conversation, it keeps our part of it too, so
/// nothing is put back.
pub fn tail<'a>(
    chat: &Chat<'a>,
    earlier: &[Planted],
    fragment: Option<&str>,
    channels: &[Channel],
) -> Tail<'a> {
    let mut splices = Splices::new(chat.body);
    let (mut dropped, mut taken) = (Vec::new(), Vec::new());
    for (at, planted) in earlier.iter().enumerate() {
        if chat.is_stored_elsewhere() {
            break;
        }
        let is_same = chat.messages.get(planted.message).is_some_and(|m| m.link == planted.link);
        let is_free = !taken.contains(&planted.message);
        if is_same && is_free && fits(chat, planted.channel, planted.message) {
            taken.push(planted.message);
            plant(chat, planted.channel, planted.message, &planted.text, &mut splices);
        } else {
            dropped.push(at);
        }
    }
    let place = fragment.and_then(|_| {
        channels.iter().find_map(|channel| {
            let message = candidate(chat, *channel)?;
            let is_free = !taken.contains(&message);
            (is_free && fits(chat, *channel, message)).then_some((*channel, message))
        })
    });
    let planted = fragment.zip(place).map(|(text, (channel, message))| {
        plant(chat, channel, message, text, &mut splices);
        Planted { message, link: chat.messages[message].link, channel, text: text.to_owned() }
    });
    Tail { splices, planted, dropped }
}

fn is_anthropic(chat: &Chat<'_>) -> bool {
    chat.dialect.system == Some("system")
}

/// The message that a new fragment would follow.
fn candidate(chat: &Chat<'_>, channel: Channel) -> Option<usize> {
    let last = chat.messages.len().checked_sub(1)?;
    // A block goes into the user's message, also where the client has put a message of the system behind it.
    let is_behind = channel == Channel::TextBlock && chat.messages[last].role == Role::System;
    if is_behind { last.checked_sub(1) } else { Some(last) }
}

/// Whether a fragment may follow that message in that form.
fn fits(chat: &Chat<'_>, channel: Channel, at: usize) -> bool {
    let Some(message) = chat.messages.get(at) else { return false };
    let next = chat.messages.get(at + 1).map(|next| next.role);
    match channel {
        Channel::TextBlock => {
            is_anthropic(chat)
                && message.role == Role::User
                && matches!(next, None | Some(Role::Assistant | Role::System))
                && content(chat, message).is_some_and(|c| c.is_string() || c.is_list())
        }
        Channel::SystemMessage | Channel::ScopedSystemMessage if is_anthropic(chat) => {
            message.role == Role::User && matches!(next, None | Some(Role::Assistant))
        }
        Channel::ScopedSystemMessage => false,
        Channel::SystemMessage | Channel::DeveloperMessage | Channel::UserMessage => {
            !is_anthropic(chat)
                && matches!(message.role, Role::User | Role::Tool | Role::System)
                && next != Some(Role::Tool)
        }
    }
}

fn content<'a>(chat: &Chat<'a>, message: &Message) -> Option<Value<'a>> {
    Value::at(chat.body, &message.span).get("content")
}

fn plant(chat: &Chat<'_>, channel: Channel, at: usize, text: &str, splices: &mut Splices<'_>) {
    let Some(message) = chat.messages.get(at) else { return };
    if channel == Channel::TextBlock {
        if let Some(content) = content(chat, message) {
            append_block(content, &text_block(text), splices);
        }
        return;
    }
    let ours = message_of(chat, channel, text);
    if chat.list.is_some_and(Value::is_string) {
        // A single text stands for a message of the user.
        splices.insert(message.span.start, r#"[{"role":"user","content":"#);
        splices.insert(message.span.end, format!("}},{ours}]"));
    } else {
        splices.insert(message.span.end, format!(",{ours}"));
    }
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

/// Adds a block to a content that is a list, or a text that is made one.
fn append_block(content: Value<'_>, block: &str, splices: &mut Splices<'_>) {
    let span = content.span();
    if content.is_string() {
        splices.insert(span.start, r#"[{"type":"text","text":"#);
        splices.insert(span.end, format!("}},{block}]"));
        return;
    }
    match content.items().last() {
        Some(last) => splices.insert(last.span().end, format!(",{block}")),
        None => splices.insert(span.start + 1, block),
    }
}

fn message_of(chat: &Chat<'_>, channel: Channel, text: &str) -> String {
    let text = quoted(text);
    let role = match channel {
        Channel::SystemMessage | Channel::ScopedSystemMessage => "system",
        Channel::DeveloperMessage => "developer",
        Channel::UserMessage | Channel::TextBlock => "user",
    };
    if channel == Channel::ScopedSystemMessage {
        return format!(r#"{{"role":"system","content":{text},"clear_at":"next_user_message"}}"#);
    }
    if chat.dialect.list == "input" {
        return format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":{text}}}]}}"#
        );
    }
    format!(r#"{{"role":"{role}","content":{text}}}"#)
}

/// Providers allow so many cache markers in a request.
const CACHE_MARKERS_MAX: usize = 4;

/// Puts a text into the system prompt of this request alone.
pub fn system<'a>(chat: &Chat<'a>, text: &str) -> Splices<'a> {
    let mut splices = Splices::new(chat.body);
    let present = chat.system.filter(|value| !value.is_null());
    match (chat.dialect.system, present) {
        (Some(field), None) => {
            let value =
                if is_anthropic(chat) { format!("[{}]", text_block(text)) } else { quoted(text) };
            match chat.system {
                Some(null) => splices.replace(null.span(), value),
                None => insert_field(chat, field, &value, &mut splices),
            }
        }
        (Some(_), Some(base)) if is_anthropic(chat) => {
            extend_blocks(chat, base, text, &mut splices);
        }
        (Some(_), Some(base)) => extend_text(base, text, &mut splices),
        (None, _) => extend_first_message(chat, text, &mut splices),
    }
    splices
}

/// The base in a block with a cache marker, so that it stays cached while the block behind it changes. A base that is a
/// list already is the client's affair: it only gets the block.
fn extend_blocks(chat: &Chat<'_>, base: Value<'_>, text: &str, splices: &mut Splices<'_>) {
    let block = text_block(text);
    if base.is_string() && base.inside().is_empty() {
        splices.replace(base.span(), format!("[{block}]"));
    } else if base.is_string() {
        let markers = memchr::memmem::find_iter(chat.body, br#""cache_control""#).count();
        let has_room = markers < CACHE_MARKERS_MAX;
        let marker = if has_room { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
        splices.insert(base.span().start, r#"[{"type":"text","text":"#);
        splices.insert(base.span().end, format!("{marker}}},{block}]"));
    } else if base.is_list() {
        append_block(base, &block, splices);
    }
}

/// A text, an empty line, and ours.
fn extend_text(base: Value<'_>, text: &str, splices: &mut Splices<'_>) {
    if !base.is_string() {
        return;
    }
    let gap = if base.inside().is_empty() { "" } else { "\n\n" };
    let ours = quoted(&format!("{gap}{text}"));
    splices.insert(base.span().end - 1, &ours[1..ours.len() - 1]);
}

fn extend_first_message(chat: &Chat<'_>, text: &str, splices: &mut Splices<'_>) {
    let Some(list) = chat.list.filter(|list| list.is_list()) else { return };
    let first = chat.messages.first();
    let base = first.filter(|first| first.role == Role::System).and_then(|m| content(chat, m));
    match base {
        Some(base) if base.is_string() => extend_text(base, text, splices),
        Some(base) if base.is_list() => append_block(base, &text_block(text), splices),
        Some(_) | None => {
            let comma = if first.is_some() { "," } else { "" };
            let ours = message_of(chat, Channel::SystemMessage, text);
            splices.insert(list.span().start + 1, format!("{ours}{comma}"));
        }
    }
}

/// A field at the beginning of the body.
fn insert_field(chat: &Chat<'_>, field: &str, value: &str, splices: &mut Splices<'_>) {
    let body = chat.body;
    let Some(open) = body.iter().position(|byte| *byte == b'{') else { return };
    let is_empty = body[open + 1..].trim_ascii_start().first() == Some(&b'}');
    let comma = if is_empty { "" } else { "," };
    splices.insert(open + 1, format!("{}:{value}{comma}", quoted(field)));
}

/// Asks for another model; nothing where the request names none.
pub fn model<'a>(chat: &Chat<'a>, name: &str) -> Splices<'a> {
    let mut splices = Splices::new(chat.body);
    if let Some(value) = chat.model.filter(|value| value.is_string()) {
        splices.replace(value.span(), quoted(name));
    }
    splices
}

#[cfg(test)]
mod tests;
