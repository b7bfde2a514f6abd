//! Conversations in memory, backed by the store, and their lookup by run, newest message or newest response.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rb_store::{ConversationKey, RunKey, Store};
use rb_wire::conversation_hash::MessageHash;
use rb_wire::request::ParsedRequest;
use rb_wire::response::Response;
use rb_wire::steps;

use super::state::Conversation;

/// Maximum number of newest messages by which the run of an anonymous request is looked up; a turn adds a few.
const MAX_HEADS: usize = 64;
/// Maximum number of newest responses by which the run of a rewritten history is looked up.
const MAX_MARKS: usize = 8;
/// Polling interval while a response is in flight.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Bounded cache of conversations; all of them are in the store.
pub(crate) struct Conversations {
    held: Mutex<HashMap<RunKey, Held>>,
    /// Run of each newest message, by organisation.
    heads: Mutex<HashMap<(String, String), String>>,
    /// Anonymous run of each newest response, by organisation.
    answers: Mutex<HashMap<(String, String), String>>,
    capacity: usize,
    store: Arc<dyn Store>,
    decision_timeout: Duration,
}

struct Held {
    conversation: Arc<Mutex<Conversation>>,
    used: Instant,
}

impl Conversations {
    pub(crate) fn new(capacity: usize, store: Arc<dyn Store>, decision_timeout: Duration) -> Self {
        let (heads, answers) = (Mutex::default(), Mutex::default());
        Self { held: Mutex::default(), heads, answers, capacity, store, decision_timeout }
    }

    /// Returns the conversation of a run, from memory or the store; a new one if there is none.
    pub(crate) async fn of(&self, run: &RunKey) -> rb_store::Result<Arc<Mutex<Conversation>>> {
        if let Some(held) = self.held.lock().get_mut(run) {
            held.used = Instant::now();
            return Ok(Arc::clone(&held.conversation));
        }
        let stored = self.store.conversation(run).await?;
        let read = stored.and_then(|stored| Conversation::read(&stored)).unwrap_or_default();
        let mut all = self.held.lock();
        if all.len() >= self.capacity {
            evict_older_half(&mut all);
        }
        // A concurrent request may have inserted it first.
        let held = all.entry(run.clone()).or_insert_with(|| Held {
            conversation: Arc::new(Mutex::new(read)),
            used: Instant::now(),
        });
        Ok(Arc::clone(&held.conversation))
    }

    /// Drops a conversation from memory; the store has its last complete state.
    pub(crate) fn forget(&self, run: &RunKey) {
        self.held.lock().remove(run);
    }

    /// Finds the run that a request continues, by its messages or by the response it refers to.
    pub(crate) async fn find(&self, org: &str, chat: &ParsedRequest<'_>) -> Option<RunKey> {
        let run_id = match chat.previous_response_id() {
            Some(answer) => self.find_by_answer(org, &answer).await,
            None => self.find_by_history(org, chat).await,
        };
        run_id.map(|run_id| RunKey { org: org.to_owned(), run_id })
    }

    /// Waits shortly for a response that is unknown: a client may continue it before this node, or another one, has
    /// processed its last byte. The response may also be one that did not pass the gateway.
    async fn find_by_answer(&self, org: &str, answer: &str) -> Option<String> {
        let head = [answer_head(answer)];
        let answer = [answer.to_owned()];
        let end = self.response_deadline();
        let mut is_asked = false;
        loop {
            if let Some(run_id) = self.known_head(org, &head) {
                return Some(run_id);
            }
            if !is_asked || self.store.is_shared() {
                is_asked = true;
                let asked = self.store.find_conversation(org, ConversationKey::Answer, &answer);
                if let Ok(Some(run_id)) = asked.await {
                    return Some(run_id);
                }
            }
            if Instant::now() >= end {
                return None;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Looks up the newest messages first, then the newest responses.
    async fn find_by_history(&self, org: &str, chat: &ParsedRequest<'_>) -> Option<String> {
        let model = chat.model();
        let last = chat.messages.iter().rev().take(MAX_HEADS);
        let heads: Vec<String> = last.map(|message| head(message.hash, &model)).collect();
        if let Some(run_id) = self.known_head(org, &heads) {
            return Some(run_id);
        }
        let stored = async |by, any_of: &[String]| {
            self.store.find_conversation(org, by, any_of).await.ok().flatten()
        };
        if let Some(run_id) = stored(ConversationKey::Head, &heads).await {
            return Some(run_id);
        }
        let marks = steps::marks_of_last_responses(chat, MAX_MARKS);
        let marks: Vec<String> = marks.into_iter().map(|found| mark(found, &model)).collect();
        if marks.is_empty() {
            return None; // a new conversation
        }
        let known = {
            let known = self.answers.lock();
            marks.iter().find_map(|mark| known.get(&(org.to_owned(), mark.clone())).cloned())
        };
        match known {
            Some(run_id) => Some(run_id),
            None => stored(ConversationKey::Mark, &marks).await,
        }
    }

    /// Deadline of waiting for a response: half of the decision timeout.
    fn response_deadline(&self) -> Instant {
        Instant::now() + self.decision_timeout / 2
    }

    fn known_head(&self, org: &str, heads: &[String]) -> Option<String> {
        let known = self.heads.lock();
        heads.iter().find_map(|head| known.get(&(org.to_owned(), head.clone())).cloned())
    }

    /// Waits for the response that a request continues, as [`Self::find`] does.
    pub(crate) async fn wait_for_response(&self, run: &RunKey, conversation: &Mutex<Conversation>) {
        let end = self.response_deadline();
        while conversation.lock().response_pending() && Instant::now() < end {
            if self.store.is_shared()
                && let Ok(Some(stored)) = self.store.conversation(run).await
                && let Some(newer) = Conversation::read(&stored)
                && !newer.response_pending()
            {
                *conversation.lock() = newer;
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Points the head index at the newest message and removes the previous entry, so that a new conversation with the
    /// same opening is not attributed to this run.
    pub(crate) fn note_head(&self, run: &RunKey, before: &str, now: &str) {
        let mut heads = self.heads.lock();
        let before = (run.org.clone(), before.to_owned());
        if heads.get(&before).is_some_and(|run_id| *run_id == run.run_id) {
            heads.remove(&before);
        }
        if heads.len() >= self.capacity {
            heads.clear(); // the store has them
        }
        heads.insert((run.org.clone(), now.to_owned()), run.run_id.clone());
    }

    /// Indexes a response of a run, so that a request that contains it is attributed to the run although the client has
    /// rewritten the history. Returns the first mark.
    pub(crate) fn note_answer(
        &self,
        run: &RunKey,
        model: &str,
        answer: &Response,
    ) -> Option<String> {
        let marks = steps::marks_of_response(answer);
        let marks: Vec<String> = marks.into_iter().map(|found| mark(found, model)).collect();
        let mut answers = self.answers.lock();
        if answers.len() >= self.capacity {
            answers.clear(); // the store has the newest ones
        }
        for mark in &marks {
            answers.insert((run.org.clone(), mark.clone()), run.run_id.clone());
        }
        marks.into_iter().next()
    }
}

/// Key of a newest message. It contains the model: equal messages to another model are another run.
pub(crate) fn head(link: MessageHash, model: &str) -> String {
    format!("{link}/{model}")
}

/// Key of a response that the provider stores.
pub(crate) fn answer_head(answer: &str) -> String {
    format!("answer/{answer}")
}

/// Key of the newest response in a request.
pub(crate) fn newest_mark(chat: &ParsedRequest<'_>) -> Option<String> {
    let marks = steps::marks_of_last_responses(chat, 1);
    marks.first().map(|found| mark(*found, &chat.model()))
}

fn mark(mark: u64, model: &str) -> String {
    format!("{mark:016x}/{model}")
}

fn evict_older_half(all: &mut HashMap<RunKey, Held>) {
    let mut used: Vec<Instant> = all.values().map(|held| held.used).collect();
    used.sort_unstable();
    let Some(middle) = used.get(used.len() / 2).copied() else { return };
    // A conversation in use stays, so that there are never two instances.
    all.retain(|_, held| held.used > middle || Arc::strong_count(&held.conversation) > 1);
}
