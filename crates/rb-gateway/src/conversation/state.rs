//! What is remembered of a conversation between two of its requests, and what of that survives a restart.

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
use crate::cache_guard::Ledger;
use crate::model_routing::Switching;

/// A conversation after its newest request.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The links of the newest request; after a restart only the last of them, at its place.
    links: Known,
    /// What that request left open.
    carry: Option<PendingTurn>,
    /// What was put into requests before, and goes into every later one.
    pub(crate) planted: Vec<Injection>,
    /// The index of the next step.
    pub(crate) next_index: u32,
    pub(crate) ledger: Ledger,
    /// What it is found by at the moment.
    pub(crate) head: String,
    /// The model that the newest request asked for.
    model: String,
    /// Whether the newest request brought tools.
    has_tools: bool,
    /// The row of the newest step, for a call that is made again.
    pub(crate) latest: Option<Arc<StepRow>>,
    pub(crate) switching: Switching,
    /// What requests beside the conversation used.
    pub(crate) asides: Spend,
    /// What the newest answer said, where the next request may go on from it without bringing it.
    kept: Option<Reply>,
    /// Such an answer is on its way.
    awaits_answer: bool,
    /// The provider's name for that answer: the conversation is found by it where the provider keeps it.
    pub(crate) answer: String,
    /// What the newest answer is known by in a history that was rewritten.
    pub(crate) mark: String,
    /// The answer that the newest request went on from.
    went_on_from: Option<String>,
    /// The client has rewritten its history before, and may do so with every request.
    is_rewritten: bool,
}

/// What a request is to the conversation that its run is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A part of it.
    Within(Continuity),
    /// A part of it, and what was taken for its beginning was a request beside it.
    Instead,
    /// A request beside it, such as for a title.
    Aside,
    /// Another agent's, which the client gave no name of its own.
    Other,
}

#[derive(Debug)]
enum Known {
    All(Vec<MessageHash>),
    Head { count: usize, link: MessageHash },
}

impl Default for Known {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    count: usize,
    head: u64,
    planted: Vec<KeptPlant>,
    next_index: u32,
    ledger: Ledger,
    #[serde(default)]
    model: String,
    #[serde(default)]
    has_tools: bool,
    #[serde(default)]
    switching: Switching,
    #[serde(default)]
    asides: Spend,
    #[serde(default)]
    carry: Option<Cow<'a, PendingTurn>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Cow<'a, Reply>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    awaits_answer: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    answer: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    mark: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    went_on_from: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_rewritten: bool,
}

#[derive(Serialize, Deserialize)]
struct KeptPlant {
    message: usize,
    link: u64,
    channel: String,
    text: String,
}

impl Conversation {
    /// How a request goes on from the newest one. One that brings only what is new goes on as a whole.
    pub(crate) fn continuity(&self, chat: &ParsedRequest<'_>) -> Continuity {
        if chat.is_server_side_history() && !self.is_empty() {
            let before = chat.previous_response_id();
            let has_same_words = match &self.links {
                Known::All(links) => *links == chat.hashes(),
                Known::Head { count, link } => {
                    let last = chat.messages.last().map(|message| message.hash);
                    (chat.messages.len(), last) == (*count, Some(*link))
                }
            };
            // Where only the conversation is named, the same words after an answer are said once more.
            let is_again = has_same_words
                && self.went_on_from.as_deref() == before.as_deref()
                && (before.is_some() || self.kept.is_none());
            return if is_again { Continuity::Retry } else { Continuity::Continues { from: 0 } };
        }
        match &self.links {
            Known::All(links) => Continuity::between(links, &chat.hashes()),
            Known::Head { count: 0, .. } => Continuity::First,
            Known::Head { count, link } => {
                let same = chat.messages.get(count - 1).is_some_and(|found| found.hash == *link);
                match (same, chat.messages.len().cmp(count)) {
                    (true, std::cmp::Ordering::Greater) => Continuity::Continues { from: *count },
                    (true, _) => Continuity::Retry,
                    (false, _) => Continuity::Compacted,
                }
            }
        }
    }

    /// What a request is to this conversation. Clients send more under the name of a session than the conversation of its
    /// agent: they ask a small model for titles, topics and summaries, and let other agents work.
    pub(crate) fn place(&self, chat: &ParsedRequest<'_>, is_of_harness: bool) -> Place {
        let continuity = self.continuity(chat);
        // An agent works with tools; what comes from the same program without any is about the work. A provider that
        // keeps the conversation may keep its tools, too.
        if !chat.has_tools
            && !chat.is_server_side_history()
            && (self.has_tools || (is_of_harness && self.is_empty()))
        {
            return Place::Aside;
        }
        if chat.has_tools && !self.has_tools && !self.is_empty() && self.next_index <= 1 {
            return Place::Instead;
        }
        let is_same_model = self.model.is_empty() || self.model == chat.model();
        match continuity {
            Continuity::First | Continuity::Retry | Continuity::Continues { .. } => {
                Place::Within(continuity)
            }
            Continuity::Edited { .. } | Continuity::Compacted => {
                if is_same_model || !is_of_harness {
                    Place::Within(continuity)
                } else if chat.messages.iter().any(|message| message.role == Role::Assistant) {
                    Place::Other
                } else {
                    Place::Aside
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match &self.links {
            Known::All(links) => links.is_empty(),
            Known::Head { count, .. } => *count == 0,
        }
    }

    /// Reads what is new in a request and remembers the request. What was read before is not read again, and a step
    /// that comes back in a history made anew is no new step.
    pub(crate) fn take<'a>(
        &mut self,
        chat: &ParsedRequest<'a>,
        continuity: Continuity,
        carry: &'a mut PendingTurn,
    ) -> NewSteps<'a> {
        *carry = self.carry.take().unwrap_or_else(|| match &self.links {
            Known::All(_) => PendingTurn::default(),
            // It was stored without: what lies before is read once more to know it again.
            Known::Head { .. } if chat.is_server_side_history() => PendingTurn::default(),
            Known::Head { count, .. } => match continuity {
                Continuity::Continues { from } => steps::carry_at(chat, from),
                Continuity::First => PendingTurn::default(),
                Continuity::Retry | Continuity::Edited { .. } | Continuity::Compacted => {
                    steps::carry_at(chat, chat.messages.len().max(*count))
                }
            },
        });
        let goes_on = chat.is_server_side_history() && continuity != Continuity::Retry;
        let open = std::mem::take(carry);
        *carry = match self.kept.take() {
            Some(reply) if goes_on => open.with_reply(reply),
            reply => open.after_reply(reply),
        };
        self.awaits_answer = chat.provider_stores_response();
        self.is_rewritten |=
            matches!(continuity, Continuity::Edited { .. } | Continuity::Compacted);
        self.went_on_from = chat.previous_response_id().map(Cow::into_owned);
        self.links = Known::All(chat.hashes());
        self.model = chat.model().into_owned();
        self.has_tools = chat.has_tools || (chat.is_server_side_history() && self.has_tools);
        let new = steps::advance(chat, continuity, carry);
        self.carry = Some(new.pending.clone());
        new
    }

    /// The provider has answered and keeps the answer, if it is one and came to its end.
    pub(crate) fn answered(&mut self, answer: &Response) {
        let is_kept = answer.is_complete && !answer.id.is_empty();
        self.kept = is_kept.then(|| Reply::from(answer));
        self.awaits_answer = false;
    }

    /// The client has rewritten its history before.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.is_rewritten
    }

    /// An answer that the next request may go on from is on its way to us.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.awaits_answer
    }

    /// User input that the newest request left without an answer.
    pub(crate) fn unanswered_user_input(&self) -> &str {
        self.carry.as_ref().map_or("", |pending| &pending.said_since)
    }

    /// The link of the newest message.
    pub(crate) fn newest(&self) -> MessageHash {
        match &self.links {
            Known::All(links) => links.last().copied().unwrap_or_default(),
            Known::Head { link, .. } => *link,
        }
    }

    /// As it is stored.
    pub(crate) fn write(&self) -> String {
        let count = match &self.links {
            Known::All(links) => links.len(),
            Known::Head { count, .. } => *count,
        };
        let planted = self.planted.iter().map(|planted| KeptPlant {
            message: planted.message,
            link: planted.hash.0,
            channel: planted.channel.id().to_owned(),
            text: planted.text.clone(),
        });
        let kept = Kept {
            count,
            head: self.newest().0,
            planted: planted.collect(),
            next_index: self.next_index,
            ledger: self.ledger.clone(),
            model: self.model.clone(),
            has_tools: self.has_tools,
            switching: self.switching.clone(),
            asides: self.asides,
            carry: self.carry.as_ref().map(Cow::Borrowed),
            reply: self.kept.as_ref().map(Cow::Borrowed),
            awaits_answer: self.awaits_answer,
            answer: self.answer.clone(),
            mark: self.mark.clone(),
            went_on_from: self.went_on_from.clone(),
            is_rewritten: self.is_rewritten,
        };
        serde_json::to_string(&kept).unwrap_or_default() // numbers and texts only: it cannot fail
    }

    /// What was stored; `None` if it cannot be read.
    pub(crate) fn read(kept: &str) -> Option<Self> {
        let kept: Kept<'_> = serde_json::from_str(kept).ok()?;
        let planted = kept.planted.into_iter().filter_map(|plant| {
            let channel = Channel::by_id(&plant.channel)?;
            let hash = MessageHash(plant.link);
            Some(Injection { message: plant.message, hash, channel, text: plant.text })
        });
        Some(Self {
            links: Known::Head { count: kept.count, link: MessageHash(kept.head) },
            carry: kept.carry.map(Cow::into_owned),
            planted: planted.collect(),
            next_index: kept.next_index,
            ledger: kept.ledger,
            head: String::new(),
            model: kept.model,
            has_tools: kept.has_tools,
            latest: None,
            switching: kept.switching,
            asides: kept.asides,
            kept: kept.reply.map(Cow::into_owned),
            awaits_answer: kept.awaits_answer,
            answer: kept.answer,
            mark: kept.mark,
            went_on_from: kept.went_on_from,
            is_rewritten: kept.is_rewritten,
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
    fn a_history_made_anew_holds_no_new_steps() {
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
        let cases: [(&[Asked<'_>], Asked<'_>, bool, Place); 12] = [
            (&[], main, true, Place::Within(Continuity::First)),
            (&[], aside("small"), true, Place::Aside),
            (&[], aside("small"), false, Place::Within(Continuity::First)),
            (&[aside("small")], main, false, Place::Instead),
            (&[main], aside("small"), true, Place::Aside),
            (&[main], aside("big"), false, Place::Aside),
            (&[main], ("big", false, &TALK[..1]), true, Place::Aside),
            (&[main], ("small", true, &[("user", "search the web")]), true, Place::Aside),
            (&[main], ("small", true, talked), true, Place::Other),
            (&[main], ("big", true, talked), true, Place::Within(Continuity::Compacted)),
            (&[main], ("small", true, talked), false, Place::Within(Continuity::Compacted)),
            (&[main], ("small", true, &TALK), true, Place::Within(Continuity::Retry)),
        ];
        for (before, now, is_of_harness, expected) in cases {
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
                assert_eq!(conversation.place(&chat, is_of_harness), expected, "{before:?} {now}");
            }
        }
    }

    #[test]
    fn what_is_planted_survives_a_restart() {
        let planted = Injection {
            message: 2,
            hash: MessageHash(u64::MAX),
            channel: Channel::TextBlock,
            text: "Look up.\n\u{1}".to_owned(),
        };
        let conversation =
            Conversation { planted: vec![planted], next_index: 7, ..Conversation::default() };
        let read = Conversation::read(&conversation.write()).unwrap();
        assert_eq!((read.planted, read.next_index), (conversation.planted, 7));
    }
}
