//! Events from the server, the keyboard and signals, in one queue.

use std::time::Duration;

use crossterm::event::KeyEvent;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rb_server::api_client;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Sender;

use super::model::{MAX_RUNS, MAX_SCORES, RunKey};
use crate::api::{RunDetail, RunStep, RunSummary};

const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Newest steps of the open run.
const MAX_DETAIL_STEPS: usize = 200;

pub(super) enum Event {
    Key(KeyEvent),
    Resized,
    Stopped,
    Subscribed,
    Failed(String),
    Step(Box<RunStep>),
    Runs(Vec<RunSummary>),
    Scores(RunKey, Vec<RunStep>),
    Detail(Box<RunDetail>),
    Refreshed,
}

/// Server and key.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) url: String,
    pub(super) key: Option<String>,
}

impl Api {
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let answer = api_client::get(&self.url, path, self.key.as_deref()).await?;
        Ok(serde_json::from_value(answer)?)
    }

    async fn detail(
        &self,
        key: &RunKey,
        step_count: u64,
        steps: usize,
    ) -> anyhow::Result<RunDetail> {
        let [org, run_id] =
            [&key.0, &key.1].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC));
        let from = (step_count + 1).saturating_sub(steps as u64);
        let range = format!("from_step={from}&step_limit={}", steps + 1);
        self.get(&format!("/v1/monitor/runs/{run_id}?org_id={org}&{range}")).await
    }

    /// Fetches data that events do not carry: the list with costs and outcomes, and the open run.
    pub(super) async fn refresh(self, open: Option<(RunKey, u64)>, sender: Sender<Event>) {
        let result = async {
            if let Some((key, step_count)) = open {
                let detail = self.detail(&key, step_count, MAX_DETAIL_STEPS).await?;
                sender.send(Event::Detail(Box::new(detail))).await?;
            }
            let runs = self.get(&format!("/v1/monitor/runs?limit={MAX_RUNS}")).await?;
            sender.send(Event::Runs(runs)).await?;
            anyhow::Ok(())
        };
        let result = result.await;
        if let Err(error) = result {
            drop(sender.send(Event::Failed(error.to_string())).await);
        }
        drop(sender.send(Event::Refreshed).await);
    }

    /// Fetches the newest scores of these runs.
    pub(super) async fn scores(self, runs: Vec<(RunKey, u64)>, sender: Sender<Event>) {
        for (key, step_count) in runs {
            if let Ok(detail) = self.detail(&key, step_count, MAX_SCORES).await {
                drop(sender.send(Event::Scores(key, detail.steps)).await);
            }
        }
    }

    /// Subscribes to step events and reconnects.
    pub(super) async fn subscribe(self, sender: Sender<Event>) {
        loop {
            let on_event = |name: &[u8], data: &[u8]| {
                let event = match name {
                    b"ready" => Some(Event::Subscribed),
                    b"step" => serde_json::from_slice(data).ok().map(Event::Step),
                    _ => None,
                };
                // Drops the event if the queue is full; the next refresh has the step.
                let _ = event.is_some_and(|event| sender.try_send(event).is_ok());
            };
            let ended =
                api_client::listen(&self.url, "/v1/monitor/stream", self.key.as_deref(), on_event)
                    .await;
            let reason = match ended {
                Ok(()) => "connection closed; reconnecting".to_owned(),
                Err(error) => format!("{error}; reconnecting"),
            };
            if sender.send(Event::Failed(reason)).await.is_err() {
                return;
            }
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
    }
}

/// Reads the keyboard; blocks, so it needs a thread.
pub(super) fn read_keys(sender: &Sender<Event>) {
    use crossterm::event::Event as Input;
    while let Ok(input) = crossterm::event::read() {
        let event = match input {
            Input::Key(key) if key.is_press() => Event::Key(key),
            Input::Resize(..) => Event::Resized,
            Input::Key(_) | Input::FocusGained | Input::FocusLost | Input::Mouse(_) => continue,
        };
        if sender.blocking_send(event).is_err() {
            return;
        }
    }
}

/// Turns signals into an event, so that the terminal is restored.
pub(super) async fn wait_for_signal(sender: Sender<Event>) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    drop(sender.send(Event::Stopped).await);
}
