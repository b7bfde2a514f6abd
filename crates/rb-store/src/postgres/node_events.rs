//! Event delivery between nodes: rows in the table `node_events` and a NOTIFY that announces new ones.
//!
//! A notification is lost when the connection breaks, so a listener also polls the table once a second and after every
//! reconnect. Ids are assigned at insert but become visible at commit, so each read repeats a range of ids behind the
//! newest one and drops the ids that were already delivered.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{mpsc, watch};
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{DbError, Sql};
use super::session::Session;
use super::values::{RowColumns, text};
use crate::sql::{Value, next};

const CHANNEL: &str = "reasonblocks";
/// Interval at which the table is polled without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Number of ids behind the newest one that may still be committed.
const MAX_COMMIT_LAG: i64 = 1_000;
/// Maximum number of events per read.
const MAX_ROWS_PER_READ: i64 = 5_000;
/// Maximum number of undelivered events of one subscriber.
const CHANNEL_CAPACITY: usize = 4_096;
/// Expired events are deleted when an id is a multiple of this.
const CLEANUP_INTERVAL_IDS: i64 = 64;
/// Age at which events are deleted.
const EVENT_TTL_MS: i64 = 60_000;

const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Inserts events and notifies the listeners.
pub(super) async fn publish(
    session: &Session,
    node: &str,
    at_ms: i64,
    messages: &[String],
) -> Sql<()> {
    let messages: Vec<Value<'_>> = messages.iter().map(|message| text(message)).collect();
    let sql = "INSERT INTO node_events (node, at_ms, message)
        SELECT $1, $2, message FROM unnest($3::text[]) AS m (message) RETURNING id";
    let rows = session.select(sql, &[&text(node), &at_ms, &messages]).await?;
    session.batch(&format!("NOTIFY {CHANNEL}")).await?;
    let newest: i64 = rows.last().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if newest % CLEANUP_INTERVAL_IDS == 0 {
        let expired = "DELETE FROM node_events WHERE at_ms < $1";
        session.execute(expired, &[&at_ms.saturating_sub(EVENT_TTL_MS)]).await?;
    }
    Ok(())
}

/// Starts to listen and returns a receiver of the events of other nodes. Dropping the receiver ends it.
pub(super) fn subscribe(
    pool: Pool,
    config: Config,
    tls: MakeRustlsConnect,
    node: String,
) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let (signal, mut signalled) = watch::channel(());
    tokio::spawn(listen(config, tls, signal));
    tokio::spawn(async move {
        let mut listener = Listener { pool, node, newest: None, delivered: BTreeSet::new() };
        while !sender.is_closed() {
            if let Ok(messages) = listener.read().await {
                for message in messages {
                    if sender.send(message).await.is_err() {
                        return;
                    }
                }
            }
            let _ = tokio::time::timeout(POLL_INTERVAL, signalled.changed()).await;
        }
    });
    receiver
}

/// Keeps a connection that receives notifications and reconnects when it breaks. Ends when the receiver of `signal` is
/// dropped.
async fn listen(config: Config, tls: MakeRustlsConnect, signal: watch::Sender<()>) {
    while !signal.is_closed() {
        if let Ok((client, mut connection)) = config.connect(tls.clone()).await {
            let (asked, mut is_gone) = (client.batch_execute("LISTEN reasonblocks"), false);
            let mut asked = std::pin::pin!(asked);
            let mut is_asked = false;
            while !is_gone && !signal.is_closed() {
                tokio::select! {
                    message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                        Some(Ok(AsyncMessage::Notification(_))) => drop(signal.send(())),
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => is_gone = true,
                    },
                    done = &mut asked, if !is_asked => {
                        is_asked = true;
                        is_gone = done.is_err();
                        // Read the events that were published before LISTEN took effect.
                        let _ = signal.send(());
                    }
                    () = tokio::time::sleep(POLL_INTERVAL), if is_asked => {}
                }
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Read position of one subscriber.
struct Listener {
    pool: Pool,
    node: String,
    /// Newest id that was read; `None` before the first read, which skips all older events.
    newest: Option<i64>,
    /// Delivered ids that a later read may return again.
    delivered: BTreeSet<i64>,
}

impl Listener {
    async fn read(&mut self) -> Result<Vec<String>, DbError> {
        let from = self.newest.map(|newest| newest - MAX_COMMIT_LAG);
        let node = self.node.clone();
        let rows = Session::with(&self.pool, READ_TIMEOUT, async |session| match from {
            None => session.select("SELECT coalesce(max(id), 0) AS id, '' AS message FROM node_events", &[]).await,
            Some(from) => {
                let sql = "SELECT id, message FROM node_events WHERE id > $1 AND node <> $2 ORDER BY id LIMIT $3";
                session.select(sql, &[&from, &text(&node), &MAX_ROWS_PER_READ]).await
            }
        })
        .await?;
        let is_first = from.is_none();
        let mut messages = Vec::new();
        for row in &rows {
            let columns = &mut RowColumns::of(row);
            let (id, message) = (next(columns)?, next(columns)?);
            self.newest = self.newest.max(Some(id));
            if self.delivered.insert(id) && !is_first {
                messages.push(message);
            }
        }
        let oldest = self.newest.unwrap_or_default() - MAX_COMMIT_LAG;
        self.delivered.retain(|id| *id > oldest);
        Ok(messages)
    }
}
