//! A request to a model, seen where it stands: which model, which messages, and where in the body each of them is.
//!
//! The scan is one pass and shallow. It finds the places that may be looked at or edited later and the link of every
//! message; what a message says is read only when somebody asks, and only from the message on that is new.

use std::borrow::Cow;

use crate::conversation_hash::{self, Members, MessageHash, Role};
use crate::dialects::{Dialect, Part};
use crate::json::{Cursor, Malformed, Span, Value};

/// A request, borrowed from its body.
#[derive(Debug, Clone)]
pub struct ParsedRequest<'a> {
    /// How the body is to be read.
    pub dialect: &'static Dialect,
    /// The body as it came.
    pub body: &'a [u8],
    /// The answer is to be streamed.
    pub is_stream: bool,
    /// The model may call tools. A request of an agent that has none is often an aside, as for a title.
    pub has_tools: bool,
    /// The messages or items, in order.
    pub messages: Vec<Message>,
    pub(crate) model: Option<Value<'a>>,
    /// The system prompt, where it stands outside the messages.
    pub(crate) system: Option<Value<'a>>,
    /// What holds the messages: a list, or a single text.
    pub(crate) list: Option<Value<'a>>,
    /// The answer that the request goes on from, where the provider keeps the conversation.
    pub(crate) previous: Option<Value<'a>>,
    /// The name under which the provider keeps the conversation.
    pub(crate) conversation: Option<Value<'a>>,
    /// Anthropic's way to let the provider keep a conversation.
    pub(crate) thread: Option<Value<'a>>,
    /// The client does not want the answer to be kept.
    pub(crate) is_unkept: bool,
    pub(crate) cache_key: Option<Value<'a>>,
    pub(crate) metadata: Option<Value<'a>>,
}

/// One message of a conversation, or one item of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where it stands in the body.
    pub span: Span,
    /// Who speaks.
    pub role: Role,
    /// It only names what the provider keeps.
    pub is_reference: bool,
    /// The hash of the conversation up to and including it.
    pub hash: MessageHash,
}

impl<'a> ParsedRequest<'a> {
    /// Finds what is where in a body.
    pub fn parse(dialect: &'static Dialect, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut request = Self {
            dialect,
            body,
            is_stream: false,
            has_tools: false,
            messages: Vec::new(),
            model: None,
            system: None,
            list: None,
            previous: None,
            conversation: None,
            thread: None,
            is_unkept: false,
            cache_key: None,
            metadata: None,
        };
        let mut cursor = Cursor::new(body);
        if !cursor.eat(b'{') {
            return Err(Malformed { at: cursor.at });
        }
        let mut is_first = true;
        while let Some(key) = cursor.key(is_first)? {
            is_first = false;
            if key == dialect.messages_field.as_bytes() {
                request.read_list(&mut cursor)?;
                continue;
            }
            let value = cursor.value()?;
            match key {
                b"model" => request.model = Some(value),
                b"stream" => request.is_stream = value.is_true(),
                b"tools" | b"functions" => request.has_tools |= value.items().next().is_some(),
                b"previous_response_id" if dialect.keeps_answers => request.previous = Some(value),
                b"conversation" if dialect.keeps_answers => request.conversation = Some(value),
                b"store" => request.is_unkept = !value.is_true() && !value.is_null(),
                b"thread" if dialect.has_threads => request.thread = Some(value),
                b"prompt_cache_key" => request.cache_key = Some(value),
                b"metadata" => request.metadata = Some(value),
                key if dialect.system.is_some_and(|name| name.as_bytes() == key) => {
                    request.system = Some(value);
                }
                _ => {}
            }
        }
        cursor.end()?;
        Ok(request)
    }

    fn read_list(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Malformed> {
        // The last of several lists counts, as it does for most parsers.
        self.messages.clear();
        let is_list = cursor.peek() == b'[';
        let start = cursor.at;
        let mut scratch = Members::new();
        if is_list {
            cursor.eat(b'[');
            while cursor.item(self.messages.is_empty())? {
                self.read_message(cursor, &mut scratch)?;
            }
        } else if cursor.peek() == b'"' {
            self.read_message(cursor, &mut scratch)?;
        } else {
            cursor.value()?;
        }
        self.list = Some(Value::at(self.body, &(start..cursor.at)));
        Ok(())
    }

    fn read_message(
        &mut self,
        cursor: &mut Cursor<'a>,
        scratch: &mut Members<'a>,
    ) -> Result<(), Malformed> {
        cursor.peek();
        let start = cursor.at;
        let head = conversation_hash::message(cursor, scratch)?;
        let before = self.messages.last().map(|message| message.hash).unwrap_or_default();
        let hash = conversation_hash::extend(before, head.hash);
        let span = start..cursor.at;
        let conversation_hash::Head { role, is_reference, .. } = head;
        self.messages.push(Message { span, role, is_reference, hash });
        Ok(())
    }

    /// The model that is asked for; empty if none is named.
    pub fn model(&self) -> Cow<'a, str> {
        self.model.and_then(Value::text).unwrap_or_default()
    }

    /// The conversation is kept by the provider, and the request holds only what is new in it.
    pub fn is_server_side_history(&self) -> bool {
        self.previous_response_id().is_some() || self.conversation_id().is_some()
    }

    /// Some of the conversation is only named, and kept by the provider.
    pub fn has_item_references(&self) -> bool {
        self.messages.iter().any(|message| message.is_reference)
    }

    /// The id of the answer that a request goes on from, where the provider keeps the conversation.
    pub fn previous_response_id(&self) -> Option<Cow<'a, str>> {
        let of_thread = self.thread.and_then(|thread| thread.get("previous_message_id"));
        self.previous.and_then(Value::text).or_else(|| of_thread.and_then(Value::text))
    }

    /// The name under which the provider keeps the conversation.
    pub fn conversation_id(&self) -> Option<Cow<'a, str>> {
        let conversation = self.conversation?;
        conversation.text().or_else(|| conversation.get("id").and_then(Value::text))
    }

    /// The provider keeps the answer, so that the next request may hold only what is new.
    pub fn provider_stores_response(&self) -> bool {
        let by_default = self.dialect.keeps_answers && !self.is_unkept;
        by_default || self.thread.is_some() || self.is_server_side_history()
    }

    /// The links of all messages, for comparing with the next request.
    pub fn hashes(&self) -> Vec<MessageHash> {
        self.messages.iter().map(|message| message.hash).collect()
    }

    /// What the agent was asked to do: the first text of a person.
    pub fn task(&self) -> Option<Cow<'a, str>> {
        let mut parts = Vec::new();
        for message in self.messages.iter().filter(|message| message.role == Role::User) {
            self.read(message, &mut parts);
            for part in parts.drain(..) {
                if let Part::Said(text) = part {
                    return Some(text);
                }
            }
        }
        None
    }

    /// What a message says, in order.
    pub(crate) fn read(&self, message: &Message, parts: &mut Vec<Part<'a>>) {
        (self.dialect.read)(Value::at(self.body, &message.span), parts);
    }
}
