//! What comes in, from whichever side, in one queue: keys, steps as they are told, and answers to what was asked.

use std::time::Duration;

use anyhow::Result;
use crossterm::event::{Event, KeyEvent, KeyEventKind};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rb_server::api_client;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::model::{Listed, RUNS_MAX, Told};
use super::render::Detail;

/// News that may wait. A screen that is behind skips steps; the list brings them back.
const WAITING_MAX: usize = 4_096;
/// A lost server is looked for this often.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
/// The newest steps of a run that is shown in full.
const DETAIL_STEPS: u64 = 200;
/// The newest steps of a run for its strip.
const STRIP_STEPS: u64 = 24;

/// Something that happened.
pub(super) enum News {
    Key(KeyEvent),
    Resized,
    /// Asked to end from outside.
    End,
    /// The server tells steps from now on.
    Listening,
    Trouble(String),
    Step(Told),
    Listed(Vec<Listed>),
    Strip {
        org: String,
        run_id: String,
        steps: Vec<Told>,
    },
    Detail(Box<Detail>),
}

/// Where news come from.
pub(super) struct Feed {
    url: String,
    key: Option<String>,
    sender: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
    /// The list was asked for and has not come; asking again would bring nothing else.
    is_listing: bool,
    /// The same for a run in full.
    is_detailing: bool,
}

impl Feed {
    /// Asks the server for its runs, and begins to listen to it. Fails if it is not there.
    pub(super) async fn new(url: &str, key: Option<String>) -> Result<Self> {
        api_client::get(url, "/v1/monitor/runs?limit=1", key.as_deref()).await?;
        let (sender, news) = mpsc::channel(WAITING_MAX);
        tokio::spawn(listen(url.to_owned(), key.clone(), sender.clone()));
        tokio::spawn(end(sender.clone()));
        let url = url.to_owned();
        Ok(Self { url, key, sender, news, is_listing: false, is_detailing: false })
    }

    /// Reads keys on a thread of its own, as nothing else can wait for them.
    pub(super) fn listen_to_keys(&self) {
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            while let Ok(event) = crossterm::event::read() {
                let news = match event {
                    Event::Key(key) if key.kind == KeyEventKind::Press => News::Key(key),
                    Event::Resize(..) => News::Resized,
                    Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {
                        continue;
                    }
                };
                if sender.blocking_send(news).is_err() {
                    return;
                }
            }
        });
    }

    pub(super) async fn next(&mut self) -> News {
        // A sender is here, so the queue never ends.
        let news = self.news.recv().await.unwrap_or(News::End);
        self.is_listing &= !matches!(news, News::Listed(_) | News::Trouble(_));
        self.is_detailing &= !matches!(news, News::Detail(_) | News::Trouble(_));
        news
    }

    /// Asks which runs there are.
    pub(super) fn ask_list(&mut self) {
        if std::mem::replace(&mut self.is_listing, true) {
            return;
        }
        self.ask(format!("/v1/monitor/runs?limit={RUNS_MAX}"), |answer| {
            serde_json::from_value(answer).ok().map(News::Listed)
        });
    }

    /// Asks for the newest steps of a run.
    pub(super) fn ask_strip(&self, run: &Listed) {
        let (org, run_id) = (run.org_id.clone(), run.run_id.clone());
        let path = detail_path(&org, &run_id, run.step_count, STRIP_STEPS);
        self.ask(path, |answer| {
            let Newest { steps } = serde_json::from_value(answer).ok()?;
            Some(News::Strip { org, run_id, steps })
        });
    }

    /// Asks for a run in full, as far as its newest steps go.
    pub(super) fn ask_detail(&mut self, org: &str, run_id: &str, newest: u64) {
        if std::mem::replace(&mut self.is_detailing, true) {
            return;
        }
        self.ask(detail_path(org, run_id, newest, DETAIL_STEPS), |answer| {
            serde_json::from_value(answer).ok().map(Box::new).map(News::Detail)
        });
    }

    fn ask(
        &self,
        path: String,
        read: impl FnOnce(serde_json::Value) -> Option<News> + Send + 'static,
    ) {
        let (url, key, sender) = (self.url.clone(), self.key.clone(), self.sender.clone());
        tokio::spawn(async move {
            let news = match api_client::get(&url, &path, key.as_deref()).await {
                Ok(answer) => read(answer),
                Err(error) => Some(News::Trouble(error.to_string())),
            };
            if let Some(news) = news {
                let _ = sender.send(news).await; // whoever asked may have gone
            }
        });
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Newest {
    steps: Vec<Told>,
}

fn detail_path(org: &str, run_id: &str, newest: u64, steps: u64) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let from = (newest + 1).saturating_sub(steps);
    let (org, run_id) = (encoded(org), encoded(run_id));
    format!("/v1/monitor/runs/{run_id}?org_id={org}&from_step={from}&step_limit={}", steps + 1)
}

/// Listens to the server, and looks for it again when it is gone.
async fn listen(url: String, key: Option<String>, sender: mpsc::Sender<News>) {
    loop {
        let hear = |name: &[u8], data: &[u8]| {
            let news = match name {
                b"ready" => Some(News::Listening),
                b"step" => serde_json::from_slice(data).ok().map(News::Step),
                _ => None,
            };
            // When too much waits, a step is missed; the list has it.
            let _ = news.is_some_and(|news| sender.try_send(news).is_ok());
        };
        let ended = api_client::listen(&url, "/v1/monitor/stream", key.as_deref(), hear).await;
        let why = match ended {
            Ok(()) => "the server is gone; looking for it".to_owned(),
            Err(error) => format!("{error}; looking for it"),
        };
        if sender.send(News::Trouble(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(AWAY_PAUSE).await;
    }
}

/// A signal ends the watching, so that the terminal is given back.
async fn end(sender: mpsc::Sender<News>) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    let _ = sender.send(News::End).await; // it has ended already
}

/// A time as the server writes it: `2026-01-31T10:00:00.000Z`.
pub(super) fn time_ms(text: &str) -> Option<i64> {
    rb_runtime::clock::parse_rfc3339(text)
}
