//! What nodes tell each other: rows in a table, and a signal that there are new ones.
//!
//! The signal may be lost with a connection, so the table is also looked at once a second, and always after a new
//! connection was made. Rows are numbered when they are written and seen when they are committed, so a few numbers
//! behind the newest are read again, and what was heard is not heard twice.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{mpsc, watch};
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::{Fault, Sql};
use super::session::Session;
use super::text::{TextIn, text};

const CHANNEL: &str = "reasonblocks";
/// The table is looked at this often, signal or not.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// Numbers behind the newest that may still be committed.
const LATE_MAX: i64 = 1_000;
/// Messages read at once.
const READ_MAX: i64 = 5_000;
/// Messages that may wait for whoever listens here.
const HEARD_MAX: usize = 4_096;
/// One in so many calls deletes what everybody has read.
const SWEPT_EVERY: i64 = 64;

const WITHIN: Duration = Duration::from_secs(5);

/// Writes messages and signals that they are there.
pub(super) async fn tell(session: &Session, node: &str, messages: &[String]) -> Sql<()> {
    let messages: Vec<TextIn<'_>> = messages.iter().map(|text| TextIn::of(text)).collect();
    let sql =
        "INSERT INTO told (node, message) SELECT $1, message FROM unnest($2::text[]) AS m (message)
        RETURNING id";
    let rows = session.select(sql, &[&TextIn::of(node), &messages]).await?;
    session.batch(&format!("NOTIFY {CHANNEL}")).await?;
    let newest: i64 = rows.last().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if newest % SWEPT_EVERY == 0 {
        session.execute("DELETE FROM told WHERE at < now() - interval '1 minute'", &[]).await?;
    }
    Ok(())
}

/// Starts listening. What other nodes tell comes out of the receiver until it is dropped.
pub(super) fn hear(
    pool: Pool,
    config: Config,
    tls: MakeRustlsConnect,
    node: String,
) -> mpsc::Receiver<String> {
    let (heard, hearing) = mpsc::channel(HEARD_MAX);
    let (signal, signalled) = watch::channel(());
    tokio::spawn(listen(config, tls, signal));
    tokio::spawn(async move {
        let mut ears = Ears { pool, node, newest: None, heard: BTreeSet::new() };
        let mut signalled = signalled;
        while !heard.is_closed() {
            if let Ok(messages) = ears.read().await {
                for message in messages {
                    if heard.send(message).await.is_err() {
                        return;
                    }
                }
            }
            let _ = tokio::time::timeout(LOOKED_EVERY, signalled.changed()).await;
        }
    });
    hearing
}

/// Holds a connection that signals arrive on, and makes another when it is gone; ends when nobody wants them.
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
                        // What was told before the connection stood is read now.
                        let _ = signal.send(());
                    }
                    () = tokio::time::sleep(LOOKED_EVERY), if is_asked => {}
                }
            }
        }
        tokio::time::sleep(LOOKED_EVERY).await;
    }
}

/// What one node has heard.
struct Ears {
    pool: Pool,
    node: String,
    /// The newest number there was; nothing before the first look, since what was told before is no news.
    newest: Option<i64>,
    /// The numbers heard that may come again.
    heard: BTreeSet<i64>,
}

impl Ears {
    async fn read(&mut self) -> Result<Vec<String>, Fault> {
        let from = self.newest.map(|newest| newest - LATE_MAX);
        let node = self.node.clone();
        let rows = Session::with(&self.pool, WITHIN, async |session| match from {
            None => session.select("SELECT coalesce(max(id), 0) AS id, '' AS message FROM told", &[]).await,
            Some(from) => {
                let sql = "SELECT id, message FROM told WHERE id > $1 AND node <> $2 ORDER BY id LIMIT $3";
                session.select(sql, &[&from, &TextIn::of(&node), &READ_MAX]).await
            }
        })
        .await?;
        let is_first = from.is_none();
        let mut messages = Vec::new();
        for row in &rows {
            let id: i64 = row.try_get("id")?;
            self.newest = self.newest.max(Some(id));
            if self.heard.insert(id) && !is_first {
                messages.push(text(row, "message")?);
            }
        }
        let oldest = self.newest.unwrap_or_default() - LATE_MAX;
        self.heard.retain(|id| *id > oldest);
        Ok(messages)
    }
}
