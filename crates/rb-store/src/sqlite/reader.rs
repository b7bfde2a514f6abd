//! Reader threads with a connection each, so that a long query blocks neither the writer nor the runtime.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::connect;
use super::error::stopped;
use crate::{Result, StoreError};

/// Work for a thread with a connection.
pub(super) type Job = Box<dyn FnOnce(&Connection) + Send>;

const THREADS: usize = 4;
/// Maximum number of queued reads; further callers wait.
const QUEUE_CAPACITY: usize = 256;

const OPERATION: &str = "reading";

/// Handle of the threads. Dropping it waits until the queue is empty.
pub(super) struct Readers {
    queue: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(path: &Path) -> Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_CAPACITY);
        let jobs = Arc::new(Mutex::new(jobs));
        let mut readers = Self { queue: Some(queue), threads: Vec::with_capacity(THREADS) };
        for _ in 0..THREADS {
            let (connection, jobs) = (connect::reader(path)?, Arc::clone(&jobs));
            let thread = std::thread::Builder::new().name("store-reader".to_owned());
            let thread = thread.spawn(move || serve(&connection, &jobs));
            let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    pub(super) async fn read(&self, job: Job) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(|| stopped(OPERATION))?;
        queue.send(job).await.map_err(|_| stopped(OPERATION))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            // A panicked thread has nothing left to do.
            drop(thread.join());
        }
    }
}

/// Takes jobs until the queue is closed. One idle thread at a time waits on the queue, the others on its lock.
fn serve(connection: &Connection, jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(job) = job else { return };
        job(connection);
    }
}
