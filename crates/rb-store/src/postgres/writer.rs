//! Those who write: a few tasks, each with a connection and a queue.
//!
//! Waiting for the disk, and for the network, costs the same for one change as for a hundred. So whatever waits when a
//! task comes back goes into one transaction, and where many write, a task waits a moment for more of them. If that fails because of one caller, each is tried alone, so that
//! nobody suffers for another. All changes of a run go to the same task: within a node, nobody waits for its lock.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use tokio::sync::{mpsc, oneshot};

use super::batch::{Touched, transact};
use super::fault::{Sql, stopped};
use super::session::Session;
use crate::crowd::{self, Crowd};
use crate::{Change, Result, StoreError};

/// Tasks that write. More of them make smaller transactions: with four, 64 clients had three quarters of the steps a
/// second that they have with two, and on two nodes two thirds.
pub(super) const WRITERS: usize = 2;
/// Requests that may wait at a task; further callers wait for a place.
const QUEUE_MAX: usize = 1024;
/// Requests that share a commit, so that a long queue does not make the first one wait for all.
const BATCH_MAX: usize = 512;
/// A transaction must be done within this time.
const WRITE_WITHIN: Duration = Duration::from_secs(20);
/// Transactions that stood in each other's way are tried again so often.
const ATTEMPTS: u32 = 5;

/// Company is waited for so long, where so many more are to be expected.
const COMPANY_WAIT: Duration = Duration::from_millis(4);
const COMPANY_WORTH: u32 = 2;

const DOING: &str = "writing";

type Answer = Result<Touched>;

struct Request {
    changes: Vec<Change>,
    answer: oneshot::Sender<Answer>,
}

/// The way to the tasks. They end when it is dropped and their queues are empty.
pub(super) struct Writers {
    queues: Vec<mpsc::Sender<Request>>,
}

impl Writers {
    /// Starts the tasks; each takes a connection of the pool when it has something to write.
    pub(super) fn start(pool: &Pool) -> Self {
        let queue = |_| {
            let (queue, requests) = mpsc::channel(QUEUE_MAX);
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
        let queue = self.queues.get(place).ok_or_else(|| stopped(DOING))?;
        queue.send(Request { changes, answer }).await.map_err(|_| stopped(DOING))?;
        answered.await.map_err(|_| stopped(DOING))?
    }
}

/// Works until the last sender is gone and the queue is empty.
async fn serve(pool: Pool, mut requests: mpsc::Receiver<Request>) {
    let mut batch = Vec::new();
    let mut crowd = Crowd::new(COMPANY_WAIT, COMPANY_WORTH, Instant::now());
    while requests.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if let Some(wait) = crowd.wait(batch.len(), Instant::now()) {
            tokio::time::sleep(wait).await;
            crowd::fill(&mut batch, BATCH_MAX, &mut requests);
        }
        crowd.leaves(batch.len(), Instant::now());
        commit(&pool, std::mem::take(&mut batch)).await;
    }
}

/// Writes requests in one transaction and answers each of them.
async fn commit(pool: &Pool, requests: Vec<Request>) {
    let calls: Vec<&[Change]> = requests.iter().map(|request| request.changes.as_slice()).collect();
    let outcomes: Vec<Answer> = match together(pool, &calls).await {
        Ok(outcomes) => outcomes.into_iter().map(|done| done.ok_or(StoreError::Moved)).collect(),
        // What is the fault of the database, or of the only caller, would not go better alone.
        Err(fault) if fault.may_pass() || calls.len() == 1 => {
            let told = fault.to_string();
            let first = std::iter::once(fault.while_doing(DOING));
            let others = (1..calls.len()).map(|_| StoreError::Unavailable(told.clone()));
            first.chain(others).map(Err).collect()
        }
        Err(_) => {
            let mut outcomes = Vec::with_capacity(calls.len());
            for call in &calls {
                let alone = together(pool, &[*call]).await;
                let alone = alone.map_err(|fault| fault.while_doing(DOING));
                let first = |done: Vec<Option<Touched>>| done.into_iter().next().flatten();
                outcomes.push(alone.and_then(|done| first(done).ok_or(StoreError::Moved)));
            }
            outcomes
        }
    };
    for (request, outcome) in requests.into_iter().zip(outcomes) {
        // The caller may have stopped waiting; the change stands all the same.
        drop(request.answer.send(outcome));
    }
}

/// Makes the changes of all calls but those that were guarded in vain, or none; again where another transaction stood in the way.
async fn together(pool: &Pool, calls: &[&[Change]]) -> Sql<Vec<Option<Touched>>> {
    let mut attempt = 1;
    loop {
        let done =
            Session::with(pool, WRITE_WITHIN, async |session| transact(session, calls).await).await;
        match done {
            Err(fault) if fault.is_collision() && attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}
