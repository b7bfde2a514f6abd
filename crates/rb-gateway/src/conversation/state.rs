//! State of a conversation between two of its requests, and its stored form.

use std::borrow::Cow;
use std::sync::Arc;

use rb_store::StepRow;
use rb_wire::channel::Channel;
use rb_wire::conversation_hash::{Continuity, MessageHash, Role};
use rb_wire::inject::Injection;
use rb_wire::request::ParsedRequest;
use rb_wire::response::Response;
use rb_wire::steps::{self, NewSteps, PendingTurn, Reply};
use serde::{Deserialize, Serialize};

use crate::budget::Spend;
use crate::cache_guard::CacheGuard;
use crate::model_routing::ModelRouter;

/// State after the newest request.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Message hashes of the newest request; after a restart only the last one and its position.
    links: History,
    /// Turn that the newest request left incomplete.
    carry: Option<PendingTurn>,
    /// Injections of earlier requests, repeated in every later one.
    pub(crate) injections: Vec<Injection>,
    /// The index of the next step.
    pub(crate) next_index: u32,
    pub(crate) cache_guard: CacheGuard,
    /// Key of the conversation in the index of newest messages.
    pub(crate) head: String,
    /// Model of the newest request.
    model: String,
    /// The newest request defined tools.
    has_tools: bool,
    /// Row of the newest step, for a retry of its call.
    pub(crate) latest: Option<Arc<StepRow>>,
    pub(crate) model_router: ModelRouter,
    /// Usage of auxiliary requests.
    pub(crate) auxiliary_spend: Spend,
    /// Newest response, if the provider stores it and the next request may refer to it.
    stored_reply: Option<Reply>,
    /// Such a response is in flight.
    response_pending: bool,
    /// Id of that response, the key of a conversation that the provider stores.
    pub(crate) answer: String,
    /// Hash of the newest response, the key of a conversation with a rewritten history.
    pub(crate) mark: String,
    /// Response that the newest request continued.
    previous_response_id: Option<String>,
    /// The client has rewritten its history before.
    is_rewritten: bool,
}

/// Relation of a request to the main conversation of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Part of the main conversation.
    Main(Continuity),
    /// The main conversation; the run was created from an auxiliary request that arrived first.
    ReplacesAuxiliary,
    /// Auxiliary request, for example for a title.
    Auxiliary,
    /// Conversation of a subagent without a separate session id.
    Subagent,
}

#[derive(Debug)]
enum History {
    All(Vec<MessageHash>),
    Head { count: usize, link: MessageHash },
}

impl Default for History {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// Conversation as stored JSON. Fields that were added later have defaults.
#[derive(Serialize, Deserialize)]
struct StoredConversation<'a> {
    count: usize,
    head: u64,
    #[serde(rename = "planted")]
    injections: Vec<StoredInjection>,
    next_index: u32,
    #[serde(rename = "ledger")]
    cache_guard: CacheGuard,
    #[serde(default)]
    model: String,
    #[serde(default)]
    has_tools: bool,
    #[serde(default, rename = "switching")]
    model_router: ModelRouter,
    #[serde(default, rename = "asides")]
    auxiliary_spend: Spend,
    #[serde(default)]
    carry: Option<Cow<'a, PendingTurn>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Cow<'a, Reply>>,
    #[serde(default, rename = "awaits_answer", skip_serializing_if = "std::ops::Not::not")]
    response_pending: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    answer: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    mark: String,
    #[serde(default, rename = "went_on_from", skip_serializing_if = "Option::is_none")]
    previous_response_id: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_rewritten: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredInjection {
    message: usize,
    link: u64,
    channel: String,
    text: String,
}

impl Conversation {
    /// Compares a request with the newest one. All messages are new if the provider stores the history.
    pub(crate) fn continuity(&self, chat: &ParsedRequest<'_>) -> Continuity {
        if chat.is_server_side_history() && !self.is_empty() {
            let before = chat.previous_response_id();
            let has_same_messages = match &self.links {
                History::All(links) => *links == chat.hashes(),
                History::Head { count, link } => {
                    let last = chat.messages.last().map(|message| message.hash);
                    (chat.messages.len(), last) == (*count, Some(*link))
                }
            };
            // If only the conversation is named, equal messages after a response are a new turn.
            let is_retry = has_same_messages
                && self.previous_response_id.as_deref() == before.as_deref()
                && (before.is_some() || self.stored_reply.is_none());
            return if is_retry { Continuity::Retry } else { Continuity::Continues { from: 0 } };
        }
        match &self.links {
            History::All(links) => Continuity::between(links, &chat.hashes()),
            History::Head { count: 0, .. } => Continuity::First,
            History::Head { count, link } => {
                let same = chat.messages.get(count - 1).is_some_and(|found| found.hash == *link);
                match (same, chat.messages.len().cmp(count)) {
                    (true, std::cmp::Ordering::Greater) => Continuity::Continues { from: *count },
                    (true, _) => Continuity::Retry,
                    (false, _) => Continuity::Compacted,
                }
            }
        }
    }

    /// Classifies a request. Clients send more than one conversation under a session id: requests for titles, topics and
    /// summaries to a small model, and subagents.
    pub(crate) fn kind_of(&self, chat: &ParsedRequest<'_>, is_session_scoped: bool) -> RequestKind {
        let continuity = self.continuity(chat);
        // An agent has tools; a request without tools from the same client is auxiliary. A provider that stores the
        // history may store the tools as well.
        if !chat.has_tools
            && !chat.is_server_side_history()
            && (self.has_tools || (is_session_scoped && self.is_empty()))
        {
            return RequestKind::Auxiliary;
        }
        if chat.has_tools && !self.has_tools && !self.is_empty() && self.next_index <= 1 {
            return RequestKind::ReplacesAuxiliary;
        }
        let is_same_model = self.model.is_empty() || self.model == chat.model();
        match continuity {
            Continuity::First | Continuity::Retry | Continuity::Continues { .. } => {
                RequestKind::Main(continuity)
            }
            Continuity::Edited { .. } | Continuity::Compacted => {
                if is_same_model || !is_session_scoped {
                    RequestKind::Main(continuity)
                } else if chat.messages.iter().any(|message| message.role == Role::Assistant) {
                    RequestKind::Subagent
                } else {
                    RequestKind::Auxiliary
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match &self.links {
            History::All(links) => links.is_empty(),
            History::Head { count, .. } => *count == 0,
        }
    }

    /// Extracts the new steps of a request and stores the request's state. Steps that reappear in a rewritten history are
    /// not new.
    pub(crate) fn take<'a>(
        &mut self,
        chat: &ParsedRequest<'a>,
        continuity: Continuity,
        carry: &'a mut PendingTurn,
    ) -> NewSteps<'a> {
        *carry = self.carry.take().unwrap_or_else(|| match &self.links {
            History::All(_) => PendingTurn::default(),
            // Stored without a pending turn: it is rebuilt from the messages before.
            History::Head { .. } if chat.is_server_side_history() => PendingTurn::default(),
            History::Head { count, .. } => match continuity {
                Continuity::Continues { from } => steps::carry_at(chat, from),
                Continuity::First => PendingTurn::default(),
                Continuity::Retry | Continuity::Edited { .. } | Continuity::Compacted => {
                    steps::carry_at(chat, chat.messages.len().max(*count))
                }
            },
        });
        let goes_on = chat.is_server_side_history() && continuity != Continuity::Retry;
        let open = std::mem::take(carry);
        *carry = match self.stored_reply.take() {
            Some(reply) if goes_on => open.with_reply(reply),
            reply => open.after_reply(reply),
        };
        self.response_pending = chat.provider_stores_response();
        self.is_rewritten |=
            matches!(continuity, Continuity::Edited { .. } | Continuity::Compacted);
        self.previous_response_id = chat.previous_response_id().map(Cow::into_owned);
        self.links = History::All(chat.hashes());
        self.model = chat.model().into_owned();
        self.has_tools = chat.has_tools || (chat.is_server_side_history() && self.has_tools);
        let new = steps::advance(chat, continuity, carry);
        self.carry = Some(new.pending.clone());
        new
    }

    /// Keeps a complete response that the provider stores.
    pub(crate) fn answered(&mut self, answer: &Response) {
        let is_kept = answer.is_complete && !answer.id.is_empty();
        self.stored_reply = is_kept.then(|| Reply::from(answer));
        self.response_pending = false;
    }

    /// Returns `true` if the client has rewritten its history before.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.is_rewritten
    }

    /// Returns `true` while a response that the next request may refer to is in flight.
    pub(crate) fn response_pending(&self) -> bool {
        self.response_pending
    }

    /// User input that the newest request left without an answer.
    pub(crate) fn unanswered_user_input(&self) -> &str {
        self.carry.as_ref().map_or("", |pending| &pending.said_since)
    }

    /// Returns the hash of the newest message.
    pub(crate) fn newest(&self) -> MessageHash {
        match &self.links {
            History::All(links) => links.last().copied().unwrap_or_default(),
            History::Head { link, .. } => *link,
        }
    }

    /// Serialises the stored form.
    pub(crate) fn write(&self) -> String {
        let count = match &self.links {
            History::All(links) => links.len(),
            History::Head { count, .. } => *count,
        };
        let injections = self.injections.iter().map(|injection| StoredInjection {
            message: injection.message,
            link: injection.hash.0,
            channel: injection.channel.id().to_owned(),
            text: injection.text.clone(),
        });
        let stored = StoredConversation {
            count,
            head: self.newest().0,
            injections: injections.collect(),
            next_index: self.next_index,
            cache_guard: self.cache_guard.clone(),
            model: self.model.clone(),
            has_tools: self.has_tools,
            model_router: self.model_router.clone(),
            auxiliary_spend: self.auxiliary_spend,
            carry: self.carry.as_ref().map(Cow::Borrowed),
            reply: self.stored_reply.as_ref().map(Cow::Borrowed),
            response_pending: self.response_pending,
            answer: self.answer.clone(),
            mark: self.mark.clone(),
            previous_response_id: self.previous_response_id.clone(),
            is_rewritten: self.is_rewritten,
        };
        serde_json::to_string(&stored).unwrap_or_default() // cannot fail
    }

    /// Reads the stored form; `None` if it is invalid.
    pub(crate) fn read(stored: &str) -> Option<Self> {
        let stored: StoredConversation<'_> = serde_json::from_str(stored).ok()?;
        let injections = stored.injections.into_iter().filter_map(|plant| {
            let channel = Channel::by_id(&plant.channel)?;
            let hash = MessageHash(plant.link);
            Some(Injection { message: plant.message, hash, channel, text: plant.text })
        });
        Some(Self {
            links: History::Head { count: stored.count, link: MessageHash(stored.head) },
            carry: stored.carry.map(Cow::into_owned),
            injections: injections.collect(),
            next_index: stored.next_index,
            cache_guard: stored.cache_guard,
            head: String::new(),
            model: stored.model,
            has_tools: stored.has_tools,
            latest: None,
            model_router: stored.model_router,
            auxiliary_spend: stored.auxiliary_spend,
            stored_reply: stored.reply.map(Cow::into_owned),
            response_pending: stored.response_pending,
            answer: stored.answer,
            mark: stored.mark,
            previous_response_id: stored.previous_response_id,
            is_rewritten: stored.is_rewritten,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(turns: &[(&str, &str)]) -> String {
        let messages: Vec<String> = turns
            .iter()
            .map(|(role, text)| format!(r#"{{"role":"{role}","content":"{text}"}}"#))
            .collect();
        format!(r#"{{"model":"m","messages":[{}]}}"#, messages.join(","))
    }

    fn steps_of(conversation: &mut Conversation, body: &str) -> (Continuity, usize) {
        let dialect = rb_wire::dialects::by_id("anthropic").unwrap();
        let chat = ParsedRequest::parse(dialect, "/v1/messages", body.as_bytes()).unwrap();
        let continuity = conversation.continuity(&chat);
        let mut carry = PendingTurn::default();
        let count = conversation.take(&chat, continuity, &mut carry).steps.len();
        (continuity, count)
    }

    const TALK: [(&str, &str); 5] =
        [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e")];

    #[test]
    fn every_step_is_seen_once_whatever_happens_between() {
        for is_restarted in [false, true] {
            let mut conversation = Conversation::default();
            let mut seen = 0;
            for (length, repeated) in [(1, 2), (3, 1), (3, 3), (5, 1)] {
                for _ in 0..repeated {
                    seen += steps_of(&mut conversation, &body(&TALK[..length])).1;
                    if is_restarted {
                        conversation = Conversation::read(&conversation.write()).unwrap();
                    }
                }
            }
            assert_eq!(seen, 2, "restarted: {is_restarted}");
        }
    }

    #[test]
    fn a_rewritten_history_has_no_new_steps() {
        let mut conversation = Conversation::default();
        steps_of(&mut conversation, &body(&TALK));
        let compacted = [("user", "summary of what happened"), ("assistant", "d"), ("user", "e")];
        let (continuity, count) = steps_of(&mut conversation, &body(&compacted));
        assert_eq!((continuity, count), (Continuity::Compacted, 0));
    }

    /// A request: the model, whether it has tools, and its turns.
    type Asked<'a> = (&'a str, bool, &'a [(&'a str, &'a str)]);

    fn request((model, has_tools, turns): Asked<'_>) -> String {
        let tools = if has_tools { r#""tools":[{"name":"t"}],"# } else { "" };
        body(turns)
            .replacen('{', &format!("{{{tools}"), 1)
            .replace(r#""m""#, &format!("\"{model}\""))
    }

    #[test]
    fn what_is_sent_beside_a_conversation_is_no_part_of_it() {
        let main: Asked<'_> = ("big", true, &TALK);
        let aside = |model| (model, false, &[("user", "title?")][..]);
        let talked: &[(&str, &str)] =
            &[("user", "look"), ("assistant", "looked"), ("user", "more")];
        let cases: [(&[Asked<'_>], Asked<'_>, bool, RequestKind); 12] = [
            (&[], main, true, RequestKind::Main(Continuity::First)),
            (&[], aside("small"), true, RequestKind::Auxiliary),
            (&[], aside("small"), false, RequestKind::Main(Continuity::First)),
            (&[aside("small")], main, false, RequestKind::ReplacesAuxiliary),
            (&[main], aside("small"), true, RequestKind::Auxiliary),
            (&[main], aside("big"), false, RequestKind::Auxiliary),
            (&[main], ("big", false, &TALK[..1]), true, RequestKind::Auxiliary),
            (&[main], ("small", true, &[("user", "search the web")]), true, RequestKind::Auxiliary),
            (&[main], ("small", true, talked), true, RequestKind::Subagent),
            (&[main], ("big", true, talked), true, RequestKind::Main(Continuity::Compacted)),
            (&[main], ("small", true, talked), false, RequestKind::Main(Continuity::Compacted)),
            (&[main], ("small", true, &TALK), true, RequestKind::Main(Continuity::Retry)),
        ];
        for (before, now, is_session_scoped, expected) in cases {
            for is_restarted in [false, true] {
                let mut conversation = Conversation::default();
                for earlier in before {
                    steps_of(&mut conversation, &request(*earlier));
                }
                if is_restarted {
                    conversation = Conversation::read(&conversation.write()).unwrap();
                }
                let now = request(now);
                let dialect = rb_wire::dialects::by_id("anthropic").unwrap();
                let chat = ParsedRequest::parse(dialect, "/v1/messages", now.as_bytes()).unwrap();
                assert_eq!(
                    conversation.kind_of(&chat, is_session_scoped),
                    expected,
                    "{before:?} {now}"
                );
            }
        }
    }

    #[test]
    fn what_is_planted_survives_a_restart() {
        let injections = Injection {
            message: 2,
            hash: MessageHash(u64::MAX),
            channel: Channel::TextBlock,
            text: "Look up.\n\u{1}".to_owned(),
        };
        let conversation =
            Conversation { injections: vec![injections], next_index: 7, ..Conversation::default() };
        let read = Conversation::read(&conversation.write()).unwrap();
        assert_eq!((read.injections, read.next_index), (conversation.injections, 7));
    }
}
