//! Demonstration without any key: a scripted agent and a scripted model with the real gateway between them, on loopback and
//! in memory.

/// Scripted agent.
mod agent;
/// Scripted provider.
mod provider;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rb_store::{RunKey, Scope, Store};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use agent::TASK;
pub use provider::MODEL;

use self::agent::Agent;
use self::provider::Provider;
use crate::app::{App, Shared, StartError};
use crate::config::{ConfigError, RawConfig};
use rb_gateway::Mode;
use rb_runtime::auth::DEFAULT_ORG;

/// Reason why the demonstration failed.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("no port of this machine can be listened on: {0}")]
    Listen(#[from] std::io::Error),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] rb_store::StoreError),
    #[error("a call through the gateway failed: {0}")]
    Call(String),
}

/// One model call of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Counted from 1.
    pub call: u32,
    /// Guidance that this call contained for the first time.
    pub told: Vec<String>,
    pub thought: String,
    /// Tool, input and output; `None` for the final answer.
    pub tool: Option<(String, String, String)>,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    pub calls: u32,
    pub tokens: u64,
    pub cost_usd: f64,
    /// The monitors that fired.
    pub fired: Vec<String>,
    /// First call with guidance, and its text.
    pub guidance: Option<(u32, String)>,
}

/// More steps than the script has.
const STEPS_MAX: u32 = 100;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Scripted provider and gateway on free ports.
pub struct Stage {
    provider: Arc<Provider>,
    app: Shared,
    store: Arc<dyn Store>,
    url: String,
    /// Ends both servers when dropped.
    _ends: [oneshot::Sender<()>; 2],
}

impl Stage {
    /// Starts both servers.
    pub async fn build() -> Result<Self, DemoError> {
        let provider = Arc::new(Provider::default());
        let (upstream, listener) = loopback().await?;
        let routes = provider::routes(Arc::clone(&provider));
        let (provider_ends, ended) = oneshot::channel::<()>();
        tokio::spawn(async move {
            tokio::select! {
                _ = axum::serve(listener, routes) => {}
                _ = ended => {}
            }
        });
        let mut raw = RawConfig { listen: "127.0.0.1:0".to_owned(), ..RawConfig::default() };
        raw.gateway.base_urls.set("anthropic", &upstream);
        let store = rb_store::open("sqlite::memory:").await?;
        let app = App::new(raw.check()?, Arc::clone(&store)).await?;
        let (url, listener) = loopback().await?;
        let (gateway_ends, ended) = oneshot::channel::<()>();
        let served = Shared::clone(&app);
        tokio::spawn(crate::serve(served, listener, async { drop(ended.await) }));
        Ok(Self { provider, app, store, url, _ends: [provider_ends, gateway_ends] })
    }

    /// URL of the dashboard of the demonstration.
    pub fn dashboard(&self) -> String {
        format!("{}/", self.url)
    }

    /// Runs the agent once and calls the callback for each model call.
    pub async fn play(&self, mode: Mode, mut tell: impl FnMut(&Beat)) -> Result<Tally, DemoError> {
        let run_id = run_id(mode);
        let mut agent = Agent::new(&self.url, &run_id, mode);
        let mut tally = Tally::default();
        let mut told_before = 0;
        while let Some(call) = agent.call().await? {
            tally.calls += 1;
            let all = self.provider.told();
            let told = all.get(told_before..).unwrap_or_default().to_vec();
            told_before = all.len();
            if let (Some(text), None) = (told.first(), &tally.guidance) {
                tally.guidance = Some((tally.calls, text.clone()));
            }
            tell(&Beat { call: tally.calls, told, thought: call.thought, tool: call.tool });
        }
        self.app.gateway.flush().await;
        let run = RunKey { org: DEFAULT_ORG.to_owned(), run_id };
        if let Some(row) = self.store.run(&Scope::org(&run.org), &run.run_id).await? {
            tally.tokens = row.tokens.total;
            tally.cost_usd = row.cost_usd;
        }
        let steps = self.store.steps(&run, 0, STEPS_MAX).await?;
        let fired: BTreeSet<String> = steps.into_iter().flat_map(|step| step.fired).collect();
        tally.fired = fired.into_iter().collect();
        Ok(tally)
    }
}

/// Run id that marks the run as scripted.
fn run_id(mode: Mode) -> String {
    let which = match mode {
        Mode::Steer => "steered",
        Mode::Observe | Mode::Off => "left-alone",
    };
    format!("scripted-demo-{which}")
}

/// Listener on a free loopback port.
async fn loopback() -> Result<(String, TcpListener), std::io::Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok((format!("http://{}", listener.local_addr()?), listener))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    async fn page(url: &str) -> String {
        let request = hyper::Request::get(url).body(Full::new(Bytes::new())).unwrap();
        let answer = rb_runtime::http_client::new().request(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn guidance_ends_the_loop_and_nothing_else_does() {
        let stage = Stage::build().await.unwrap();
        let plain = stage.play(Mode::Observe, |_| {}).await.unwrap();
        let steered = stage.play(Mode::Steer, |_| {}).await.unwrap();
        assert_eq!(plain.guidance, None);
        let (at, text) = steered.guidance.clone().unwrap();
        assert!(at < steered.calls && !text.is_empty(), "{steered:?}");
        assert!(
            steered.calls < plain.calls && steered.tokens < plain.tokens,
            "{plain:?} {steered:?}"
        );
        assert!(
            0.0 < steered.cost_usd && steered.cost_usd < plain.cost_usd,
            "{plain:?} {steered:?}"
        );
        assert!(!plain.fired.is_empty() && !steered.fired.is_empty(), "{plain:?} {steered:?}");
        let page = page(&stage.dashboard()).await;
        for run in ["scripted-demo-steered", "scripted-demo-left-alone", "scripted-agent"] {
            assert!(page.contains(run), "{run} is on the dashboard: {page}");
        }
        let again = Stage::build().await.unwrap().play(Mode::Steer, |_| {}).await.unwrap();
        assert_eq!(again, steered, "it is the same every time");
    }
}
