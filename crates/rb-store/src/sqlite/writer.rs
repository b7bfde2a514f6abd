//! Writer thread.
//!
//! Syncing the disk costs the same for one change as for a hundred, so all queued requests share one transaction, and
//! under load the thread waits for more of them (`group_commit`). If a request fails, the transaction is rolled back
//! and repeated with a savepoint per request, so that only the failing request is left out. Requests are acknowledged
//! after the commit.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ErrorCode, Result as Sql};
use tokio::sync::{mpsc, oneshot};

use super::connect::{self, Location};
use super::error::{is_version_conflict, stopped, store_error, with_context};
use super::migrate::migrate;
use super::reader::Job;
use super::run_cache::RunCache;
use super::write;
use crate::group_commit::{self, CommitDelay};
use crate::migration::migrations;
use crate::sql::Dialect;
use crate::{Change, Result, StoreError};

/// Maximum number of queued requests; further callers wait.
const QUEUE_CAPACITY: usize = 1024;
/// Maximum number of requests per commit, which limits the latency of the first one.
const MAX_BATCH: usize = 512;

/// Group-commit delay and the number of further requests that justify it.
const GROUP_COMMIT_DELAY: Duration = Duration::from_millis(1);
const MIN_EXPECTED_REQUESTS: u32 = 2;

const OPERATION: &str = "writing";

type Answer = Result<Vec<u64>>;

/// Message to the thread.
pub(super) enum Request {
    Write {
        changes: Vec<Change>,
        answer: oneshot::Sender<Answer>,
    },
    /// Other work on this connection: the end of a checkpoint or, for a database in memory, a read.
    Do(Job),
}

/// Handle of the thread. Dropping it writes all queued requests and closes the database.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which opens and migrates the database.
    pub(super) async fn start(place: Location) -> Result<Self> {
        let (queue, requests) = mpsc::channel(QUEUE_CAPACITY);
        let (opened, is_open) = oneshot::channel();
        let body = move || match open(&place) {
            Ok(connection) => {
                if opened.send(Ok(())).is_ok() {
                    serve(&connection, requests);
                }
            }
            // The caller may have been dropped.
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(body);
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        is_open.await.map_err(|_| stopped("opening the database"))??;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(super) async fn apply(&self, changes: Vec<Change>) -> Answer {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Write { changes, answer }).await?;
        answered.await.map_err(|_| stopped(OPERATION))?
    }

    pub(super) async fn read(&self, job: Job) -> Result<()> {
        self.send(Request::Do(job)).await
    }

    /// Returns a sender for a thread that ends before the writer.
    pub(super) fn queue(&self) -> Result<mpsc::Sender<Request>> {
        self.queue.clone().ok_or_else(|| stopped(OPERATION))
    }

    async fn send(&self, request: Request) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(|| stopped(OPERATION))?;
        queue.send(request).await.map_err(|_| stopped(OPERATION))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread has nothing left to write.
            drop(thread.join());
        }
    }
}

fn open(place: &Location) -> Result<Connection> {
    let mut connection = connect::writer(place)?;
    migrate(&mut connection, &migrations(Dialect::Sqlite))?;
    Ok(connection)
}

/// Processes requests until all senders are dropped and the queue is empty.
fn serve(connection: &Connection, mut requests: mpsc::Receiver<Request>) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    let mut cache = RunCache::default();
    let mut delay = CommitDelay::new(GROUP_COMMIT_DELAY, MIN_EXPECTED_REQUESTS, Instant::now());
    while requests.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        if let Some(wait) = delay.wait(batch.len(), Instant::now()) {
            thread::sleep(wait);
            group_commit::fill(&mut batch, MAX_BATCH, &mut requests);
        }
        delay.on_commit(batch.len(), Instant::now());
        let mut writes = Vec::new();
        let mut jobs = Vec::new();
        for request in batch.drain(..) {
            match request {
                Request::Write { changes, answer } => writes.push((changes, answer)),
                Request::Do(job) => jobs.push(job),
            }
        }
        commit(connection, &mut cache, writes);
        for job in jobs {
            job(connection);
        }
    }
}

/// Applies requests in one transaction and answers each of them.
fn commit(
    connection: &Connection,
    cache: &mut RunCache,
    requests: Vec<(Vec<Change>, oneshot::Sender<Answer>)>,
) {
    if requests.is_empty() {
        return;
    }
    let (requests, answers): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    let outcomes = transaction(connection, cache, &requests, together).or_else(|error| {
        if is_for_all(&error) {
            return Err(error);
        }
        transaction(connection, cache, &requests, one_by_one)
    });
    // Dropped before the answers are sent: callers get back the only reference to their rows and free them on their
    // own thread.
    drop(requests);
    match outcomes {
        Ok(outcomes) => {
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // The caller may have been dropped; the change is committed anyway.
                drop(answer.send(outcome.map_err(with_context(OPERATION))));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(store_error(OPERATION, &error))));
            }
        }
    }
}

/// Returns true if the error affects all requests, such as a lock held by another process.
fn is_for_all(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::ReadOnly)
    )
}

/// Results of the requests; the outer error affects all of them.
type Outcomes = Sql<Vec<Sql<Vec<u64>>>>;

/// Runs `work` in a transaction and rolls back on an error.
fn transaction(
    connection: &Connection,
    cache: &mut RunCache,
    requests: &[Vec<Change>],
    work: fn(&Connection, &mut RunCache, &[Vec<Change>]) -> Outcomes,
) -> Outcomes {
    let done = run(connection, "BEGIN IMMEDIATE")
        .and_then(|()| cache.begin(connection))
        .and_then(|()| work(connection, cache, requests))
        .and_then(|outcomes| run(connection, "COMMIT").map(|()| outcomes));
    if done.is_err() {
        cache.clear();
        if !connection.is_autocommit() {
            // A transaction that cannot be rolled back now is rolled back when the file is opened again.
            drop(connection.execute_batch("ROLLBACK"));
        }
    }
    done
}

/// Applies all requests without savepoints. Fails on any error except a version conflict of the first change, which
/// leaves nothing to undo.
fn together(connection: &Connection, cache: &mut RunCache, requests: &[Vec<Change>]) -> Outcomes {
    let mut outcomes = Vec::with_capacity(requests.len());
    for changes in requests {
        let mut touched = Vec::with_capacity(changes.len());
        let mut outcome = Ok(());
        for change in changes {
            match write(connection, cache, change) {
                Ok(rows) => touched.push(rows),
                Err(error) if touched.is_empty() && is_version_conflict(&error) => {
                    outcome = Err(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        outcomes.push(outcome.map(|()| touched));
    }
    cache.flush(connection)?;
    Ok(outcomes)
}

/// Applies each request in a savepoint.
fn one_by_one(connection: &Connection, cache: &mut RunCache, requests: &[Vec<Change>]) -> Outcomes {
    let mut outcomes = Vec::with_capacity(requests.len());
    for changes in requests {
        run(connection, "SAVEPOINT request")?;
        let touched: Sql<Vec<u64>> =
            changes.iter().map(|change| write(connection, cache, change)).collect();
        let outcome = touched.and_then(|touched| cache.flush(connection).map(|()| touched));
        if let Err(error) = outcome {
            // A full disk may end the transaction, which discards the changes of all requests.
            if connection.is_autocommit() {
                return Err(error);
            }
            run(connection, "ROLLBACK TO request")?;
            cache.clear();
            outcomes.push(Err(error));
        } else {
            outcomes.push(outcome);
        }
        run(connection, "RELEASE request")?;
    }
    Ok(outcomes)
}

fn run(connection: &Connection, sql: &str) -> Sql<()> {
    connection.prepare_cached(sql)?.execute(()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{RunKey, StepRow};

    fn step(step_index: u32, bytes: usize) -> Vec<Change> {
        let run = RunKey { org: "a".to_owned(), run_id: "r".to_owned() };
        let thought = "x".repeat(bytes);
        vec![Change::PutStep(Arc::new(StepRow { run, step_index, thought, ..StepRow::default() }))]
    }

    /// Applies requests in one commit.
    fn answers(connection: &Connection, requests: Vec<Vec<Change>>) -> Vec<Answer> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            requests.iter().map(|_| oneshot::channel()).unzip();
        commit(connection, &mut RunCache::default(), requests.into_iter().zip(senders).collect());
        receivers.into_iter().map(|answer| answer.blocking_recv().expect("answered")).collect()
    }

    fn steps(connection: &Connection) -> u32 {
        let sql = "SELECT step_count FROM runs WHERE (SELECT count(*) FROM steps) = step_count";
        connection.query_row(sql, (), |row| row.get(0)).expect("aggregates equal a recount")
    }

    #[test]
    fn a_full_disk_fails_requests_until_there_is_space() {
        let connection = open(&Location::Memory).expect("a database");
        assert!(answers(&connection, vec![step(0, 10)]).iter().all(Result::is_ok));
        connection.execute_batch("PRAGMA max_page_count = 60").expect("a small disk");
        let results = answers(&connection, vec![step(1, 10), step(2, 1_000_000), step(3, 10)]);
        assert!(matches!(results[1], Err(StoreError::Unavailable(_))), "{results:?}");
        let stored = results.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(steps(&connection) as usize, 1 + stored, "only acknowledged steps are stored");
        connection.execute_batch("PRAGMA max_page_count = 100000").expect("a larger disk");
        assert!(answers(&connection, vec![step(2, 1_000_000)]).iter().all(Result::is_ok));
        assert_eq!(steps(&connection) as usize, 2 + stored);
    }

    #[test]
    fn a_transaction_that_cannot_start_fails_all_requests() {
        let connection = open(&Location::Memory).expect("a database");
        connection.execute_batch("PRAGMA query_only = ON").expect("a database that is only read");
        for answer in answers(&connection, vec![step(0, 10), step(1, 10)]) {
            let message = answer.expect_err("nothing can be written").to_string();
            assert!(message.contains("is read-only"), "{message}");
        }
        assert!(connection.is_autocommit());
        connection.execute_batch("PRAGMA query_only = OFF").expect("a database");
        assert!(answers(&connection, vec![step(0, 10)]).iter().all(Result::is_ok));
    }
}
