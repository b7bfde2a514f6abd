//! The conversations in memory, and how one is found again: by its run, or by the messages it has in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rb_store::RunKey;
use rb_wire::answer::Answer;
use rb_wire::chain::Link;
use rb_wire::chat::Chat;
use rb_wire::steps;

use super::conversation::Conversation;
use crate::app::App;

/// A request without a name is looked for by its last messages; so many of them, since a turn adds a few.
const LOOKED_BACK: usize = 64;
/// So long the end of an answer is waited for that a request goes on from.
const TOLD_WITHIN_MS: u32 = 10;

/// What is remembered of conversations; the rest is in the store.
pub(super) struct Conversations {
    held: Mutex<HashMap<RunKey, Held>>,
    /// The run of each newest message, by organisation.
    heads: Mutex<HashMap<(String, String), String>>,
    /// The run without a name that each of the newest answers was given in, by organisation, and the model asked.
    answers: Mutex<HashMap<(String, u64), (String, String)>>,
    count_max: usize,
}

struct Held {
    conversation: Arc<Mutex<Conversation>>,
    used: Instant,
}

/// Locked for a few lines, never over an await.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversations {
    pub(super) fn new(count_max: usize) -> Self {
        let (heads, answers) = (Mutex::default(), Mutex::default());
        Self { held: Mutex::default(), heads, answers, count_max }
    }

    /// The conversation of a run, from memory or the store; a new one where there is none. `None` while the store is
    /// away and nobody knows.
    pub(super) async fn of(&self, app: &App, run: &RunKey) -> Option<Arc<Mutex<Conversation>>> {
        if let Some(held) = lock(&self.held).get_mut(run) {
            held.used = Instant::now();
            return Some(Arc::clone(&held.conversation));
        }
        let stored = app.store.conversation(run).await.ok()?;
        let read = stored.and_then(|stored| Conversation::read(&stored)).unwrap_or_default();
        let mut all = lock(&self.held);
        if all.len() >= self.count_max {
            forget_older_half(&mut all);
        }
        // Somebody else may have been faster; theirs stands.
        let held = all.entry(run.clone()).or_insert_with(|| Held {
            conversation: Arc::new(Mutex::new(read)),
            used: Instant::now(),
        });
        Some(Arc::clone(&held.conversation))
    }

    /// Throws away what is in memory of a run, since it may be half changed; the store has what was before.
    pub(super) fn forget(&self, run: &RunKey) {
        lock(&self.held).remove(run);
    }

    /// The run whose newest request is the beginning of this one, or whose newest answer it goes on from.
    pub(super) async fn find(&self, app: &App, org: &str, chat: &Chat<'_>) -> Option<RunKey> {
        let heads: Vec<String> = if let Some(answer) = chat.goes_on_from() {
            vec![answer_head(&answer)]
        } else {
            let last = chat.messages.iter().rev().take(LOOKED_BACK);
            last.map(|message| head(message.link, &chat.model())).collect()
        };
        let known = || {
            let known = lock(&self.heads);
            heads.iter().find_map(|head| known.get(&(org.to_owned(), head.clone())).cloned())
        };
        let mut run_id = known();
        if run_id.is_none() {
            let stored = app.store.conversation_with_head(org, &heads).await.ok().flatten();
            run_id = stored.or_else(|| self.of_answer(org, chat));
        }
        if run_id.is_none() && chat.goes_on_from().is_some() {
            told_by_now(|| known().is_some()).await;
            run_id = known();
        }
        run_id.map(|run_id| RunKey { org: org.to_owned(), run_id })
    }

    /// A conversation has a new newest message. The one before is forgotten: who begins with the same words again
    /// begins another run.
    pub(super) fn note_head(&self, run: &RunKey, before: &str, now: &str) {
        let mut heads = lock(&self.heads);
        let before = (run.org.clone(), before.to_owned());
        if heads.get(&before).is_some_and(|run_id| *run_id == run.run_id) {
            heads.remove(&before);
        }
        if heads.len() >= self.count_max {
            heads.clear(); // the store still knows them
        }
        heads.insert((run.org.clone(), now.to_owned()), run.run_id.clone());
    }

    /// An answer was given in a run: a request that holds it belongs there, whatever else the client has rewritten.
    pub(super) fn note_answer(&self, run: &RunKey, model: &str, answer: &Answer) {
        let mut answers = lock(&self.answers);
        if answers.len() >= self.count_max {
            answers.clear();
        }
        for mark in steps::marks_of_answer(answer) {
            answers.insert((run.org.clone(), mark), (run.run_id.clone(), model.to_owned()));
        }
    }

    fn of_answer(&self, org: &str, chat: &Chat<'_>) -> Option<String> {
        let marks = steps::marks_of_last_answers(chat);
        let answers = lock(&self.answers);
        marks.into_iter().find_map(|mark| {
            let (run_id, model) = answers.get(&(org.to_owned(), mark))?;
            (*model == chat.model()).then(|| run_id.clone())
        })
    }
}

/// A client may go on from an answer in the very moment in which it has its last byte, and we are told of its end a
/// little later. Waits for that, but not for long: it may be an answer that we never saw.
pub(super) async fn told_by_now(is_told: impl Fn() -> bool) {
    for _ in 0..TOLD_WITHIN_MS {
        if is_told() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What a conversation is found again by. The model is part of it: the same words to another model are another run.
pub(super) fn head(link: Link, model: &str) -> String {
    format!("{link}/{model}")
}

/// The same for one that the provider keeps.
pub(super) fn answer_head(answer: &str) -> String {
    format!("answer/{answer}")
}

fn forget_older_half(all: &mut HashMap<RunKey, Held>) {
    let mut used: Vec<Instant> = all.values().map(|held| held.used).collect();
    used.sort_unstable();
    let Some(middle) = used.get(used.len() / 2).copied() else { return };
    // One that somebody works on is kept, so that there are never two of it.
    all.retain(|_, held| held.used > middle || Arc::strong_count(&held.conversation) > 1);
}
