//! A transformer on a thread of its own: it takes milliseconds a text and cannot leave the thread it was loaded on.
//!
//! Two kinds of callers share it. Those with many texts wait their turn; whoever needs an opinion at once goes before
//! them, text by text, and gives up after a time of its own choosing.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::transformer::{Transformer, TransformerError};
use crate::vector::Vector;

/// What the texts came to.
type Answer = Result<Vec<Vector>, TransformerError>;

/// A loaded model that may be asked from any thread. Its thread ends with it.
pub struct HostedTransformer(Arc<Desk>);

/// What waits to be done.
#[derive(Default)]
struct Desk {
    piles: Mutex<Piles>,
    changed: Condvar,
}

#[derive(Default)]
struct Piles {
    urgent: VecDeque<Work>,
    patient: VecDeque<Work>,
    is_closed: bool,
}

struct Work {
    texts: VecDeque<String>,
    vectors: Vec<Vector>,
    is_urgent: bool,
    then: Box<dyn FnOnce(Answer) + Send>,
}

impl HostedTransformer {
    /// Loads the model, as [`Transformer::open`] does.
    pub fn open(folder: PathBuf) -> Result<Self, TransformerError> {
        let desk = Arc::new(Desk::default());
        let (told, opened) = mpsc::channel();
        let theirs = Arc::clone(&desk);
        thread::spawn(move || {
            let closing = Closing(&theirs);
            let transformer = match Transformer::open(&folder) {
                Ok(transformer) => transformer,
                Err(error) => {
                    let _ = told.send(Err(error)); // whoever asked has gone: nobody to tell
                    return;
                }
            };
            let _ = told.send(Ok(()));
            while let Some(work) = theirs.next() {
                theirs.advance(work, &transformer);
            }
            drop(closing);
        });
        opened.recv().map_err(|_| ended())??;
        Ok(Self(desk))
    }

    /// Embeds texts when their turn comes, and hands over their directions in the same order.
    pub fn embed(&self, texts: Vec<String>, then: impl FnOnce(Answer) + Send + 'static) {
        self.0.add(Work::new(texts, false, Box::new(then)));
    }

    /// Embeds texts before all that wait; `None` where that failed or took longer than `limit`.
    pub fn embed_within(&self, texts: Vec<String>, limit: Duration) -> Option<Vec<Vector>> {
        let (done, answer) = mpsc::channel();
        let then = move |vectors| drop(done.send(vectors)); // whoever asked has given up: nobody to tell
        self.0.add(Work::new(texts, true, Box::new(then)));
        answer.recv_timeout(limit).ok()?.ok()
    }
}

impl Drop for HostedTransformer {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Work {
    fn new(texts: Vec<String>, is_urgent: bool, then: Box<dyn FnOnce(Answer) + Send>) -> Self {
        Self { texts: texts.into(), vectors: Vec::new(), is_urgent, then }
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Piles> {
        self.piles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, work: Work) {
        let mut piles = self.lock();
        if piles.is_closed {
            drop(piles);
            (work.then)(Err(ended()));
            return;
        }
        piles.of(&work).push_back(work);
        self.changed.notify_one();
    }

    /// The work to go on with; `None` when nobody will ask again.
    fn next(&self) -> Option<Work> {
        let piles = self.lock();
        let waits = |piles: &mut Piles| {
            !piles.is_closed && piles.urgent.is_empty() && piles.patient.is_empty()
        };
        let mut piles =
            self.changed.wait_while(piles, waits).unwrap_or_else(PoisonError::into_inner);
        if piles.is_closed {
            return None;
        }
        piles.urgent.pop_front().or_else(|| piles.patient.pop_front())
    }

    /// One text further; between two texts somebody else may come first.
    fn advance(&self, mut work: Work, transformer: &Transformer) {
        let Some(text) = work.texts.pop_front() else {
            (work.then)(Ok(work.vectors));
            return;
        };
        match transformer.embed(&text) {
            Ok(vector) => {
                work.vectors.push(vector);
                self.lock().of(&work).push_front(work);
            }
            Err(error) => (work.then)(Err(error)),
        }
    }

    /// Nobody asks any more, or nobody answers: what waits is told so.
    fn close(&self) {
        let mut piles = self.lock();
        piles.is_closed = true;
        let left: Vec<Work> = {
            let Piles { urgent, patient, .. } = &mut *piles;
            urgent.drain(..).chain(patient.drain(..)).collect()
        };
        drop(piles);
        self.changed.notify_all();
        for work in left {
            (work.then)(Err(ended()));
        }
    }
}

impl Piles {
    fn of(&mut self, work: &Work) -> &mut VecDeque<Work> {
        if work.is_urgent { &mut self.urgent } else { &mut self.patient }
    }
}

/// Closes the desk when the thread ends, however it ends.
struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn ended() -> TransformerError {
    TransformerError::Run { reason: "its thread ended".to_owned() }
}
