//! What is remembered of a conversation between two of its requests, and what of that survives a restart.

use rb_wire::chain::{Continuity, Link};
use rb_wire::chat::Chat;
use rb_wire::steer::{Channel, Planted};
use rb_wire::steps::{self, Carry, NewSteps};
use serde::{Deserialize, Serialize};

use super::ledger::Ledger;

/// A conversation after its newest request.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The links of the newest request; after a restart only the last of them, at its place.
    links: Known,
    /// What that request left open.
    carry: Option<Carry>,
    /// What was put into requests before, and goes into every later one.
    pub(super) planted: Vec<Planted>,
    /// The index of the next step.
    pub(super) next_index: u32,
    pub(super) ledger: Ledger,
    /// What it is found by at the moment.
    pub(super) head: String,
}

#[derive(Debug)]
enum Known {
    All(Vec<Link>),
    Head { count: usize, link: Link },
}

impl Default for Known {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Kept {
    count: usize,
    head: u64,
    planted: Vec<KeptPlant>,
    next_index: u32,
    ledger: Ledger,
}

#[derive(Serialize, Deserialize)]
struct KeptPlant {
    message: usize,
    link: u64,
    channel: String,
    text: String,
}

impl Conversation {
    /// How a request goes on from the newest one.
    pub(super) fn continuity(&self, chat: &Chat<'_>) -> Continuity {
        match &self.links {
            Known::All(links) => Continuity::between(links, &chat.links()),
            Known::Head { count: 0, .. } => Continuity::First,
            Known::Head { count, link } => {
                let same = chat.messages.get(count - 1).is_some_and(|found| found.link == *link);
                match (same, chat.messages.len().cmp(count)) {
                    (true, std::cmp::Ordering::Greater) => Continuity::Continues { from: *count },
                    (true, _) => Continuity::Retry,
                    (false, _) => Continuity::Compacted,
                }
            }
        }
    }

    /// Reads what is new in a request and remembers the request. What was read before is not read again, and a step
    /// that comes back in a history made anew is no new step.
    pub(super) fn take<'a>(
        &mut self,
        chat: &Chat<'a>,
        continuity: Continuity,
        carry: &'a mut Carry,
    ) -> NewSteps<'a> {
        *carry = self.carry.take().unwrap_or_else(|| match &self.links {
            Known::All(_) => Carry::default(),
            // After a restart, what lies before is read once more to know it again.
            Known::Head { count, .. } => match continuity {
                Continuity::Continues { from } => steps::carry_at(chat, from),
                Continuity::First => Carry::default(),
                Continuity::Retry | Continuity::Edited { .. } | Continuity::Compacted => {
                    steps::carry_at(chat, chat.messages.len().max(*count))
                }
            },
        });
        self.links = Known::All(chat.links());
        let new = steps::advance(chat, continuity, carry);
        self.carry = Some(new.carry.clone());
        new
    }

    /// The link of the newest message.
    pub(super) fn newest(&self) -> Link {
        match &self.links {
            Known::All(links) => links.last().copied().unwrap_or_default(),
            Known::Head { link, .. } => *link,
        }
    }

    /// As it is stored.
    pub(super) fn write(&self) -> String {
        let count = match &self.links {
            Known::All(links) => links.len(),
            Known::Head { count, .. } => *count,
        };
        let planted = self.planted.iter().map(|planted| KeptPlant {
            message: planted.message,
            link: planted.link.0,
            channel: planted.channel.id().to_owned(),
            text: planted.text.clone(),
        });
        let kept = Kept {
            count,
            head: self.newest().0,
            planted: planted.collect(),
            next_index: self.next_index,
            ledger: self.ledger.clone(),
        };
        serde_json::to_string(&kept).unwrap_or_default() // numbers and texts only: it cannot fail
    }

    /// What was stored; `None` if it cannot be read.
    pub(super) fn read(kept: &str) -> Option<Self> {
        let kept: Kept = serde_json::from_str(kept).ok()?;
        let planted = kept.planted.into_iter().filter_map(|plant| {
            let channel = Channel::by_id(&plant.channel)?;
            let link = Link(plant.link);
            Some(Planted { message: plant.message, link, channel, text: plant.text })
        });
        Some(Self {
            links: Known::Head { count: kept.count, link: Link(kept.head) },
            carry: None,
            planted: planted.collect(),
            next_index: kept.next_index,
            ledger: kept.ledger,
            head: String::new(),
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
        let chat = Chat::scan(dialect, body.as_bytes()).unwrap();
        let continuity = conversation.continuity(&chat);
        let mut carry = Carry::default();
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

    #[test]
    fn what_is_planted_survives_a_restart() {
        let planted = Planted {
            message: 2,
            link: Link(u64::MAX),
            channel: Channel::TextBlock,
            text: "Look up.\n\u{1}".to_owned(),
        };
        let conversation =
            Conversation { planted: vec![planted], next_index: 7, ..Conversation::default() };
        let read = Conversation::read(&conversation.write()).unwrap();
        assert_eq!((read.planted, read.next_index), (conversation.planted, 7));
    }
}
