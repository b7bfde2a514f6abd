//! The conversations in memory, and how one is found again: by its run, or by the messages it has in common.

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

/// A request without a name is looked for by its last messages; so many of them, since a turn adds a few.
const LOOKED_BACK: usize = 64;
/// One whose history was rewritten is looked for by so many of its last answers, and what came back for them.
const ANSWERS_LOOKED_FOR: usize = 8;
/// The end of an answer that a request goes on from is waited for in such steps.
const A_MOMENT: Duration = Duration::from_millis(1);

/// What is remembered of conversations; the rest is in the store.
pub(crate) struct Conversations {
    held: Mutex<HashMap<RunKey, Held>>,
    /// The run of each newest message, by organisation.
    heads: Mutex<HashMap<(String, String), String>>,
    /// The run without a name that each of the newest answers was given in, by organisation.
    answers: Mutex<HashMap<(String, String), String>>,
    count_max: usize,
    store: Arc<dyn Store>,
    decided_within: Duration,
}

struct Held {
    conversation: Arc<Mutex<Conversation>>,
    used: Instant,
}

impl Conversations {
    pub(crate) fn new(count_max: usize, store: Arc<dyn Store>, decided_within: Duration) -> Self {
        let (heads, answers) = (Mutex::default(), Mutex::default());
        Self { held: Mutex::default(), heads, answers, count_max, store, decided_within }
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
        if all.len() >= self.count_max {
            forget_older_half(&mut all);
        }
        // Somebody else may have been faster; theirs stands.
        let held = all.entry(run.clone()).or_insert_with(|| Held {
            conversation: Arc::new(Mutex::new(read)),
            used: Instant::now(),
        });
        Ok(Arc::clone(&held.conversation))
    }

    /// Throws away what is in memory of a run, since it may be half changed; the store has what was before.
    pub(crate) fn forget(&self, run: &RunKey) {
        self.held.lock().remove(run);
    }

    /// The run whose newest request is the beginning of this one, or whose newest answer it goes on from.
    pub(crate) async fn find(&self, org: &str, chat: &ParsedRequest<'_>) -> Option<RunKey> {
        let run_id = match chat.previous_response_id() {
            Some(answer) => self.find_by_answer(org, &answer).await,
            None => self.find_by_history(org, chat).await,
        };
        run_id.map(|run_id| RunKey { org: org.to_owned(), run_id })
    }

    /// A client may go on from an answer in the very moment in which it has its last byte, and we are told of its end a
    /// little later, here or on another node. That is waited for, but not for long: it may be one that we never saw.
    async fn find_by_answer(&self, org: &str, answer: &str) -> Option<String> {
        let head = [answer_head(answer)];
        let answer = [answer.to_owned()];
        let end = self.told_by();
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
            tokio::time::sleep(A_MOMENT).await;
        }
    }

    /// What the store knows comes before what its answers look like.
    async fn find_by_history(&self, org: &str, chat: &ParsedRequest<'_>) -> Option<String> {
        let model = chat.model();
        let last = chat.messages.iter().rev().take(LOOKED_BACK);
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
        let marks = steps::marks_of_last_responses(chat, ANSWERS_LOOKED_FOR);
        let marks: Vec<String> = marks.into_iter().map(|found| mark(found, &model)).collect();
        if marks.is_empty() {
            return None; // it begins
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

    /// Until then the end of an answer is waited for: half of the time there is for everything.
    fn told_by(&self) -> Instant {
        Instant::now() + self.decided_within / 2
    }

    fn known_head(&self, org: &str, heads: &[String]) -> Option<String> {
        let known = self.heads.lock();
        heads.iter().find_map(|head| known.get(&(org.to_owned(), head.clone())).cloned())
    }

    /// Waits for the end of the answer that a request goes on from, as [`Self::find`] does.
    pub(crate) async fn told_answer(&self, run: &RunKey, conversation: &Mutex<Conversation>) {
        let end = self.told_by();
        while conversation.lock().awaits_answer() && Instant::now() < end {
            if self.store.is_shared()
                && let Ok(Some(stored)) = self.store.conversation(run).await
                && let Some(newer) = Conversation::read(&stored)
                && !newer.awaits_answer()
            {
                *conversation.lock() = newer;
                return;
            }
            tokio::time::sleep(A_MOMENT).await;
        }
    }

    /// A conversation has a new newest message. The one before is forgotten: who begins with the same words again
    /// begins another run.
    pub(crate) fn note_head(&self, run: &RunKey, before: &str, now: &str) {
        let mut heads = self.heads.lock();
        let before = (run.org.clone(), before.to_owned());
        if heads.get(&before).is_some_and(|run_id| *run_id == run.run_id) {
            heads.remove(&before);
        }
        if heads.len() >= self.count_max {
            heads.clear(); // the store still knows them
        }
        heads.insert((run.org.clone(), now.to_owned()), run.run_id.clone());
    }

    /// An answer was given in a run: a request that holds it belongs there, whatever else the client has rewritten. Gives
    /// the first thing that it is known by.
    pub(crate) fn note_answer(
        &self,
        run: &RunKey,
        model: &str,
        answer: &Response,
    ) -> Option<String> {
        let marks = steps::marks_of_response(answer);
        let marks: Vec<String> = marks.into_iter().map(|found| mark(found, model)).collect();
        let mut answers = self.answers.lock();
        if answers.len() >= self.count_max {
            answers.clear(); // the store still knows the newest ones
        }
        for mark in &marks {
            answers.insert((run.org.clone(), mark.clone()), run.run_id.clone());
        }
        marks.into_iter().next()
    }
}

/// What a conversation is found again by. The model is part of it: the same words to another model are another run.
pub(crate) fn head(link: MessageHash, model: &str) -> String {
    format!("{link}/{model}")
}

/// The same for one that the provider keeps.
pub(crate) fn answer_head(answer: &str) -> String {
    format!("answer/{answer}")
}

/// The same for one that holds an answer: of the newest answer in a request.
pub(crate) fn newest_mark(chat: &ParsedRequest<'_>) -> Option<String> {
    let marks = steps::marks_of_last_responses(chat, 1);
    marks.first().map(|found| mark(*found, &chat.model()))
}

fn mark(mark: u64, model: &str) -> String {
    format!("{mark:016x}/{model}")
}

fn forget_older_half(all: &mut HashMap<RunKey, Held>) {
    let mut used: Vec<Instant> = all.values().map(|held| held.used).collect();
    used.sort_unstable();
    let Some(middle) = used.get(used.len() / 2).copied() else { return };
    // One that somebody works on is kept, so that there are never two of it.
    all.retain(|_, held| held.used > middle || Arc::strong_count(&held.conversation) > 1);
}
