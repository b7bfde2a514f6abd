//! Parsed requests: model, messages, and the position of each in the body.
//!
//! Parsing is one shallow pass. It finds the positions that may be read or edited later and the hash of every message;
//! the content of a message is read on demand, and only from the first new message on.

use std::borrow::Cow;

use crate::conversation_hash::{self, Head, Members, MessageHash, Role};
use crate::dialects::{Dialect, Part, RequestFields};
use crate::json::{Cursor, Malformed, Span, Value};

/// A request, borrowed from its body.
#[derive(Debug, Clone)]
pub struct ParsedRequest<'a> {
    /// Protocol of the request.
    pub dialect: &'static dyn Dialect,
    /// The body as received.
    pub body: &'a [u8],
    /// The request declares tools. A request of an agent that declares none is often auxiliary, for a title for example.
    pub has_tools: bool,
    /// Messages or items, in order.
    pub messages: Vec<Message>,
    pub(crate) fields: RequestFields<'a>,
    /// Value of the messages field: a list, or a string.
    pub(crate) list: Option<Value<'a>>,
    path: &'a str,
}

/// A message of a conversation, or an item of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Position in the body.
    pub span: Span,
    /// Role of the speaker.
    pub role: Role,
    /// The item only names an item that the provider stores.
    pub is_reference: bool,
    /// Hash of the conversation up to and including this message.
    pub hash: MessageHash,
}

impl<'a> ParsedRequest<'a> {
    /// Parses a request; `path` is the path of its URL, in which some dialects have the model.
    pub fn parse(
        dialect: &'static dyn Dialect,
        path: &'a str,
        body: &'a [u8],
    ) -> Result<Self, Malformed> {
        let mut request = Self {
            dialect,
            body,
            has_tools: false,
            messages: Vec::new(),
            fields: RequestFields::default(),
            list: None,
            path,
        };
        let messages_field = dialect.messages_field().as_bytes();
        let mut cursor = Cursor::new(body);
        if !cursor.eat(b'{') {
            return Err(Malformed { at: cursor.at });
        }
        let mut is_first = true;
        while let Some(key) = cursor.key(is_first)? {
            is_first = false;
            if key == messages_field {
                request.read_list(&mut cursor)?;
                continue;
            }
            let value = cursor.value()?;
            let fields = &mut request.fields;
            match key {
                b"model" => fields.model = Some(value),
                b"tools" | b"functions" => request.has_tools |= value.items().next().is_some(),
                b"prompt_cache_key" => fields.cache_key = Some(value),
                b"metadata" => fields.metadata = Some(value),
                key => dialect.read_field(key, value, fields),
            }
        }
        cursor.end()?;
        Ok(request)
    }

    fn read_list(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Malformed> {
        // The last of several lists counts, as in most parsers.
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
        let Head { role, kind, hash } = conversation_hash::message(cursor, scratch)?;
        let before = self.messages.last().map(|message| message.hash).unwrap_or_default();
        self.messages.push(Message {
            span: start..cursor.at,
            role: role.map_or(Role::Other, |role| self.dialect.role(role, kind)),
            is_reference: self.dialect.is_reference(kind),
            hash: conversation_hash::extend(before, hash),
        });
        Ok(())
    }

    /// Returns the requested model; empty if the request names none.
    pub fn model(&self) -> Cow<'a, str> {
        self.dialect.model(self.path, &self.fields)
    }

    /// Returns whether the provider stores the conversation and the request holds only its new messages.
    pub fn is_server_side_history(&self) -> bool {
        self.previous_response_id().is_some() || self.conversation_id().is_some()
    }

    /// Returns whether the request refers to items that the provider stores.
    pub fn has_item_references(&self) -> bool {
        self.messages.iter().any(|message| message.is_reference)
    }

    /// Returns the response that the request continues, if the provider stores the conversation.
    pub fn previous_response_id(&self) -> Option<Cow<'a, str>> {
        self.fields.previous_response_id.and_then(Value::text)
    }

    /// Returns the identifier of a conversation that the provider stores.
    pub fn conversation_id(&self) -> Option<Cow<'a, str>> {
        self.fields.conversation_id.and_then(Value::text)
    }

    /// Returns whether the provider stores the response, so that the next request may hold only new messages.
    pub fn provider_stores_response(&self) -> bool {
        let is_enabled = self.fields.store.unwrap_or_else(|| self.dialect.stores_responses());
        is_enabled || self.is_server_side_history()
    }

    /// Returns the hashes of all messages, for a comparison with the next request.
    pub fn hashes(&self) -> Vec<MessageHash> {
        self.messages.iter().map(|message| message.hash).collect()
    }

    /// Returns the task of the agent: the first text of a person.
    pub fn task(&self) -> Option<Cow<'a, str>> {
        let mut parts = Vec::new();
        for message in self.messages.iter().filter(|message| message.role == Role::User) {
            self.read(message, &mut parts);
            for part in parts.drain(..) {
                if let Part::UserText(text) = part {
                    return Some(text);
                }
            }
        }
        None
    }

    /// Appends the parts of a message.
    pub(crate) fn read(&self, message: &Message, parts: &mut Vec<Part<'a>>) {
        self.dialect.read(self.value_of(message), parts);
    }

    pub(crate) fn value_of(&self, message: &Message) -> Value<'a> {
        Value::at(self.body, &message.span)
    }
}
