//! Writer tasks, each with a connection and a queue.
//!
//! The network round trips and the disk sync cost the same for one change as for a hundred, so all queued requests
//! share one transaction, and under load a task waits for more of them (`group_commit`). If the transaction fails
//! because of one request, each is repeated alone. All changes of a run go to the same task, so tasks of one node do
//! not wait for each other's locks.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use tokio::sync::{mpsc, oneshot};

use super::batch::{RowsChanged, transact};
use super::error::{Sql, stopped};
use super::session::Session;
use crate::group_commit::{self, CommitDelay};
use crate::{Change, Result, StoreError};

/// Number of writer tasks. More tasks make smaller transactions: with four instead of two, 64 clients reached three
/// quarters of the steps per second, and two thirds on two nodes.
pub(super) const WRITERS: usize = 2;
/// Maximum number of queued requests per task; further callers wait.
const QUEUE_CAPACITY: usize = 1024;
/// Maximum number of requests per commit, which limits the latency of the first one.
const MAX_BATCH: usize = 512;
/// Timeout of a transaction.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of attempts after a deadlock or serialization failure.
const MAX_ATTEMPTS: u32 = 5;

/// Group-commit delay and the number of further requests that justify it.
const GROUP_COMMIT_DELAY: Duration = Duration::from_millis(4);
const MIN_EXPECTED_REQUESTS: u32 = 2;

const OPERATION: &str = "writing";

type Answer = Result<RowsChanged>;

struct Request {
    changes: Vec<Change>,
    answer: oneshot::Sender<Answer>,
}

/// Queues of the tasks, which end when this is dropped and their queues are empty.
pub(super) struct Writers {
    queues: Vec<mpsc::Sender<Request>>,
}

impl Writers {
    /// Starts the tasks; each takes a connection from the pool when it has changes to write.
    pub(super) fn start(pool: &Pool) -> Self {
        let queue = |_| {
            let (queue, requests) = mpsc::channel(QUEUE_CAPACITY);
            tokio::spawn(serve(pool.clone(), requests));
            queue
        };
        Self { queues: (0..WRITERS).map(queue).collect() }
    }

    pub(super) async fn apply(&self, changes: Vec<Change>) -> Answer {
        let (answer, answered) = oneshot::channel();
        let hash = BuildHasherDefault::<DefaultHasher>::default()
            .hash_one(changes.iter().find_map(Change::run));
        let place = usize::try_from(hash % WRITERS as u64).unwrap_or_default();
        let queue = self.queues.get(place).ok_or_else(|| stopped(OPERATION))?;
        queue.send(Request { changes, answer }).await.map_err(|_| stopped(OPERATION))?;
        answered.await.map_err(|_| stopped(OPERATION))?
    }
}

/// Processes requests until all senders are dropped and the queue is empty.
async fn serve(pool: Pool, mut requests: mpsc::Receiver<Request>) {
    let mut batch = Vec::new();
    let mut delay = CommitDelay::new(GROUP_COMMIT_DELAY, MIN_EXPECTED_REQUESTS, Instant::now());
    while requests.recv_many(&mut batch, MAX_BATCH).await > 0 {
        if let Some(wait) = delay.wait(batch.len(), Instant::now()) {
            tokio::time::sleep(wait).await;
            group_commit::fill(&mut batch, MAX_BATCH, &mut requests);
        }
        delay.on_commit(batch.len(), Instant::now());
        commit(&pool, std::mem::take(&mut batch)).await;
    }
}

/// Applies requests in one transaction and answers each of them.
async fn commit(pool: &Pool, requests: Vec<Request>) {
    let calls: Vec<&[Change]> = requests.iter().map(|request| request.changes.as_slice()).collect();
    let outcomes: Vec<Answer> = match together(pool, &calls).await {
        Ok(outcomes) => {
            outcomes.into_iter().map(|done| done.ok_or(StoreError::VersionConflict)).collect()
        }
        // A transient error, or the error of a single request, is not retried.
        Err(error) if error.is_transient() || calls.len() == 1 => {
            let message = error.to_string();
            let first = std::iter::once(error.with_context(OPERATION));
            let others = (1..calls.len()).map(|_| StoreError::Unavailable(message.clone()));
            first.chain(others).map(Err).collect()
        }
        Err(_) => {
            let mut outcomes = Vec::with_capacity(calls.len());
            for call in &calls {
                let alone = together(pool, &[*call]).await;
                let alone = alone.map_err(|error| error.with_context(OPERATION));
                let first = |done: Vec<Option<RowsChanged>>| done.into_iter().next().flatten();
                outcomes
                    .push(alone.and_then(|done| first(done).ok_or(StoreError::VersionConflict)));
            }
            outcomes
        }
    };
    for (request, outcome) in requests.into_iter().zip(outcomes) {
        // The caller may have been dropped; the change is committed anyway.
        drop(request.answer.send(outcome));
    }
}

/// Applies all calls except those with a version conflict, or none; repeats after a deadlock or serialization
/// failure.
async fn together(pool: &Pool, calls: &[&[Change]]) -> Sql<Vec<Option<RowsChanged>>> {
    let mut attempt = 1;
    loop {
        let done =
            Session::with(pool, WRITE_TIMEOUT, async |session| transact(session, calls).await)
                .await;
        match done {
            Err(error)
                if error.is_deadlock_or_serialization_failure() && attempt < MAX_ATTEMPTS =>
            {
                attempt += 1;
            }
            done => return done,
        }
    }
}
