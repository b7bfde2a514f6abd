//! The one thread that writes.
//!
//! Waiting for the disk costs the same for one change as for a hundred. So whatever waits when the thread comes back
//! goes into one transaction, and where many write, the thread waits a moment for more of them (`crowd`). Should
//! anything in it fail, it is taken back and done again with each caller in a savepoint of its own, so that only the
//! request that fails is left out. Nobody is answered before the commit.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ErrorCode, Result as Sql};
use tokio::sync::{mpsc, oneshot};

use super::connect::{self, Place};
use super::fault::{fault, is_moved, stopped, while_doing};
use super::heads::Heads;
use super::migrate::{self, migrate};
use super::reader::Job;
use super::write;
use crate::crowd::{self, Crowd};
use crate::{Change, Result, StoreError};

/// Requests that may wait; further callers wait for a place.
const QUEUE_MAX: usize = 1024;
/// Requests that share a commit, so that a long queue does not make the first one wait for all.
const BATCH_MAX: usize = 512;

/// Company is waited for so long, where so many more are to be expected.
const COMPANY_WAIT: Duration = Duration::from_millis(1);
const COMPANY_WORTH: u32 = 2;

const DOING: &str = "writing";

type Answer = Result<Vec<u64>>;

/// What the thread is asked for.
pub(super) enum Request {
    Write {
        changes: Vec<Change>,
        answer: oneshot::Sender<Answer>,
    },
    /// Something else that needs this connection: the end of a journal, or, in memory, whatever is read.
    Do(Job),
}

/// The thread and the way to it. Dropping it writes what waits, then closes the database.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Opens the database on a thread of its own and brings it up to date.
    pub(super) async fn start(place: Place) -> Result<Self> {
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        let (opened, is_open) = oneshot::channel();
        let body = move || match open(&place) {
            Ok(connection) => {
                if opened.send(Ok(())).is_ok() {
                    serve(&connection, requests);
                }
            }
            // Whoever asked may have gone; then nobody wants to know.
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
        answered.await.map_err(|_| stopped(DOING))?
    }

    pub(super) async fn read(&self, job: Job) -> Result<()> {
        self.send(Request::Do(job)).await
    }

    /// The way to the thread, for one that ends before it.
    pub(super) fn queue(&self) -> Result<mpsc::Sender<Request>> {
        self.queue.clone().ok_or_else(|| stopped(DOING))
    }

    async fn send(&self, request: Request) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(|| stopped(DOING))?;
        queue.send(request).await.map_err(|_| stopped(DOING))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to write.
            drop(thread.join());
        }
    }
}

fn open(place: &Place) -> Result<Connection> {
    let mut connection = connect::writer(place)?;
    migrate(&mut connection, migrate::ALL)?;
    Ok(connection)
}

/// Works until the last sender is gone and the queue is empty.
fn serve(connection: &Connection, mut requests: mpsc::Receiver<Request>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut heads = Heads::default();
    let mut crowd = Crowd::new(COMPANY_WAIT, COMPANY_WORTH, Instant::now());
    while requests.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        if let Some(wait) = crowd.wait(batch.len(), Instant::now()) {
            thread::sleep(wait);
            crowd::fill(&mut batch, BATCH_MAX, &mut requests);
        }
        crowd.leaves(batch.len(), Instant::now());
        let mut writes = Vec::new();
        let mut jobs = Vec::new();
        for request in batch.drain(..) {
            match request {
                Request::Write { changes, answer } => writes.push((changes, answer)),
                Request::Do(job) => jobs.push(job),
            }
        }
        commit(connection, &mut heads, writes);
        for job in jobs {
            job(connection);
        }
    }
}

/// Writes requests in one transaction and answers each of them.
fn commit(
    connection: &Connection,
    heads: &mut Heads,
    requests: Vec<(Vec<Change>, oneshot::Sender<Answer>)>,
) {
    if requests.is_empty() {
        return;
    }
    let (requests, answers): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    let outcomes = transaction(connection, heads, &requests, together).or_else(|error| {
        if is_for_all(&error) {
            return Err(error);
        }
        transaction(connection, heads, &requests, one_by_one)
    });
    // Let go of before they are answered: whoever asked gets its rows back whole, and frees them where they were made.
    drop(requests);
    match outcomes {
        Ok(outcomes) => {
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // The caller may have stopped waiting; the change stands all the same.
                drop(answer.send(outcome.map_err(while_doing(DOING))));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(fault(DOING, &error))));
            }
        }
    }
}

/// Whether an error is no single request's: somebody else is writing, and was waited for long enough.
fn is_for_all(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::ReadOnly)
    )
}

/// What became of each request; an error here is one of all of them.
type Outcomes = Sql<Vec<Sql<Vec<u64>>>>;

/// Does the work of a transaction, or takes all of it back.
fn transaction(
    connection: &Connection,
    heads: &mut Heads,
    requests: &[Vec<Change>],
    work: fn(&Connection, &mut Heads, &[Vec<Change>]) -> Outcomes,
) -> Outcomes {
    let done = run(connection, "BEGIN IMMEDIATE")
        .and_then(|()| heads.begin(connection))
        .and_then(|()| work(connection, heads, requests))
        .and_then(|outcomes| run(connection, "COMMIT").map(|()| outcomes));
    if done.is_err() {
        heads.forget();
        if !connection.is_autocommit() {
            // What cannot be rolled back now is rolled back when the file is opened next.
            drop(connection.execute_batch("ROLLBACK"));
        }
    }
    done
}

/// All requests as one: none of them may fail, but for a guard that stands first and does not hold, which leaves nothing
/// to take back.
fn together(connection: &Connection, heads: &mut Heads, requests: &[Vec<Change>]) -> Outcomes {
    let mut outcomes = Vec::with_capacity(requests.len());
    for changes in requests {
        let mut touched = Vec::with_capacity(changes.len());
        let mut outcome = Ok(());
        for change in changes {
            match write(connection, heads, change) {
                Ok(rows) => touched.push(rows),
                Err(error) if touched.is_empty() && is_moved(&error) => {
                    outcome = Err(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        outcomes.push(outcome.map(|()| touched));
    }
    heads.write(connection)?;
    Ok(outcomes)
}

/// Each request in a savepoint of its own.
fn one_by_one(connection: &Connection, heads: &mut Heads, requests: &[Vec<Change>]) -> Outcomes {
    let mut outcomes = Vec::with_capacity(requests.len());
    for changes in requests {
        run(connection, "SAVEPOINT request")?;
        let touched: Sql<Vec<u64>> =
            changes.iter().map(|change| write(connection, heads, change)).collect();
        let outcome = touched.and_then(|touched| heads.write(connection).map(|()| touched));
        if let Err(error) = outcome {
            // A full disk may have ended the transaction; then nobody's changes are there.
            if connection.is_autocommit() {
                return Err(error);
            }
            run(connection, "ROLLBACK TO request")?;
            heads.forget();
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

    /// Puts requests through one commit.
    fn answers(connection: &Connection, requests: Vec<Vec<Change>>) -> Vec<Answer> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            requests.iter().map(|_| oneshot::channel()).unzip();
        commit(connection, &mut Heads::default(), requests.into_iter().zip(senders).collect());
        receivers.into_iter().map(|answer| answer.blocking_recv().expect("answered")).collect()
    }

    fn steps(connection: &Connection) -> u32 {
        let sql = "SELECT step_count FROM runs WHERE (SELECT count(*) FROM steps) = step_count";
        connection.query_row(sql, (), |row| row.get(0)).expect("sums equal a recount")
    }

    #[test]
    fn a_full_disk_is_told_and_passes() {
        let connection = open(&Place::Memory).expect("a database");
        assert!(answers(&connection, vec![step(0, 10)]).iter().all(Result::is_ok));
        connection.execute_batch("PRAGMA max_page_count = 60").expect("a small disk");
        let told = answers(&connection, vec![step(1, 10), step(2, 1_000_000), step(3, 10)]);
        assert!(matches!(told[1], Err(StoreError::Unavailable(_))), "{told:?}");
        let kept = told.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(steps(&connection) as usize, 1 + kept, "only what was answered well is there");
        connection.execute_batch("PRAGMA max_page_count = 100000").expect("a larger disk");
        assert!(answers(&connection, vec![step(2, 1_000_000)]).iter().all(Result::is_ok));
        assert_eq!(steps(&connection) as usize, 2 + kept);
    }

    #[test]
    fn a_transaction_that_cannot_begin_fails_everybody_and_is_over() {
        let connection = open(&Place::Memory).expect("a database");
        connection.execute_batch("PRAGMA query_only = ON").expect("a database that is only read");
        for answer in answers(&connection, vec![step(0, 10), step(1, 10)]) {
            let told = answer.expect_err("nothing can be written").to_string();
            assert!(told.contains("may only be read"), "{told}");
        }
        assert!(connection.is_autocommit());
        connection.execute_batch("PRAGMA query_only = OFF").expect("a database");
        assert!(answers(&connection, vec![step(0, 10)]).iter().all(Result::is_ok));
    }
}
