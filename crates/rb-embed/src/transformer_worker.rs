//! Worker thread that owns a `Transformer`, which takes milliseconds per text and cannot be sent between threads.
//!
//! The worker has two queues. Batch jobs (`TransformerWorker::embed`) are processed in order; urgent jobs
//! (`TransformerWorker::embed_within`) preempt them after the current text and have a timeout.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::transformer::{Transformer, TransformerError};
use crate::vector::Vector;

/// Result of a job: one vector per text.
type Embeddings = Result<Vec<Vector>, TransformerError>;

/// Handle of a loaded model, usable from any thread. Dropping it stops the worker thread.
pub struct TransformerWorker(Arc<Shared>);

/// State shared by the handle and the worker thread.
#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    changed: Condvar,
}

#[derive(Default)]
struct Queues {
    urgent: VecDeque<Job>,
    batch: VecDeque<Job>,
    is_closed: bool,
}

struct Job {
    texts: VecDeque<String>,
    vectors: Vec<Vector>,
    is_urgent: bool,
    on_done: Box<dyn FnOnce(Embeddings) + Send>,
}

impl TransformerWorker {
    /// Starts the thread and loads the model as [`Transformer::open`] does.
    pub fn open(folder: PathBuf) -> Result<Self, TransformerError> {
        let shared = Arc::new(Shared::default());
        let (result, opened) = mpsc::channel();
        let worker = Arc::clone(&shared);
        thread::spawn(move || {
            let _close = CloseOnDrop(&worker);
            // Sending fails only if `open` has already returned; there is nothing to clean up then.
            let transformer = match Transformer::open(&folder) {
                Ok(transformer) => transformer,
                Err(error) => {
                    let _ = result.send(Err(error));
                    return;
                }
            };
            let _ = result.send(Ok(()));
            while let Some(job) = worker.next() {
                worker.advance(job, &transformer);
            }
        });
        opened.recv().map_err(|_| worker_stopped())??;
        Ok(Self(shared))
    }

    /// Queues a batch job; `on_done` receives the vectors in the order of the texts.
    pub fn embed(&self, texts: Vec<String>, on_done: impl FnOnce(Embeddings) + Send + 'static) {
        self.0.add(Job::new(texts, false, Box::new(on_done)));
    }

    /// Runs an urgent job ahead of all batch jobs; `None` if it failed or took longer than `timeout`.
    pub fn embed_within(&self, texts: Vec<String>, timeout: Duration) -> Option<Vec<Vector>> {
        let (sender, receiver) = mpsc::channel();
        let on_done = move |vectors| drop(sender.send(vectors)); // fails if the caller timed out
        self.0.add(Job::new(texts, true, Box::new(on_done)));
        receiver.recv_timeout(timeout).ok()?.ok()
    }
}

impl Drop for TransformerWorker {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Job {
    fn new(
        texts: Vec<String>,
        is_urgent: bool,
        on_done: Box<dyn FnOnce(Embeddings) + Send>,
    ) -> Self {
        Self { texts: texts.into(), vectors: Vec::new(), is_urgent, on_done }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, job: Job) {
        let mut queues = self.lock();
        if queues.is_closed {
            drop(queues);
            (job.on_done)(Err(worker_stopped()));
            return;
        }
        queues.queue_of(&job).push_back(job);
        self.changed.notify_one();
    }

    /// Blocks until there is a job; `None` once the queues are closed.
    fn next(&self) -> Option<Job> {
        let queues = self.lock();
        let is_idle = |queues: &mut Queues| {
            !queues.is_closed && queues.urgent.is_empty() && queues.batch.is_empty()
        };
        let mut queues =
            self.changed.wait_while(queues, is_idle).unwrap_or_else(PoisonError::into_inner);
        if queues.is_closed {
            return None;
        }
        queues.urgent.pop_front().or_else(|| queues.batch.pop_front())
    }

    /// Embeds one text of the job and requeues it, so that an urgent job can run between two texts.
    fn advance(&self, mut job: Job, transformer: &Transformer) {
        let Some(text) = job.texts.pop_front() else {
            (job.on_done)(Ok(job.vectors));
            return;
        };
        match transformer.embed(&text) {
            Ok(vector) => {
                job.vectors.push(vector);
                self.lock().queue_of(&job).push_front(job);
            }
            Err(error) => (job.on_done)(Err(error)),
        }
    }

    /// Closes the queues and fails the remaining jobs.
    fn close(&self) {
        let mut queues = self.lock();
        queues.is_closed = true;
        let remaining: Vec<Job> = {
            let Queues { urgent, batch, .. } = &mut *queues;
            urgent.drain(..).chain(batch.drain(..)).collect()
        };
        drop(queues);
        self.changed.notify_all();
        for job in remaining {
            (job.on_done)(Err(worker_stopped()));
        }
    }
}

impl Queues {
    fn queue_of(&mut self, job: &Job) -> &mut VecDeque<Job> {
        if job.is_urgent { &mut self.urgent } else { &mut self.batch }
    }
}

/// Closes the queues when the worker thread ends, including by a panic.
struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn worker_stopped() -> TransformerError {
    TransformerError::Run { reason: "the worker thread has stopped".to_owned() }
}
