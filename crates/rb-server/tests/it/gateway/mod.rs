//! Whole servers in front of a scripted upstream: responses to agents during failures, and requests to providers
//! otherwise.

/// Requests that are not part of a conversation.
mod auxiliary_requests;
/// Budgets with warnings and stops.
mod budgets;
/// Client that keeps every byte.
mod client;
/// Conversations in every dialect.
mod dialects;
/// Final answers as closing steps.
mod final_answer;
/// Counters of gateway requests.
mod metrics;
/// Each request starts with the previous one.
mod prefix_stability;
/// Tracing span of a request.
mod request_span;
/// Model routing by state.
mod routing;
/// Histories stored by the provider.
mod server_side_history;
/// Failing store.
mod store_faults;
/// Streams split at any byte.
mod streaming;
/// Scripted upstream.
mod upstream;
/// Failing upstreams.
mod upstream_faults;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rb_store::{Change, RunKey, Runs as _, StepRow, Store};
use rb_testkit::FaultyStore;
use rb_wire::providers::PROVIDERS;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::client::Got;
use self::upstream::{Act, Seen, Upstream};
use rb_runtime::auth::DEFAULT_ORG;
use rb_runtime::auth::{self, KeyKind};
use rb_server::config::RawConfig;
use rb_server::{App, Shared};

/// Timeout of an expected event.
const ARRIVES_WITHIN: Duration = Duration::from_secs(20);

/// Gateway on a free port, with its upstream and its store.
struct Stage {
    upstream: Upstream,
    store: Arc<FaultyStore>,
    raw: RawConfig,
    app: Shared,
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Stage {
    /// Starts a gateway with the default test settings; `script` answers requests.
    async fn new(script: impl FnMut(&Seen) -> Vec<Act> + Send + 'static) -> Self {
        Self::with(patient(), script).await
    }

    async fn with(
        mut raw: RawConfig,
        script: impl FnMut(&Seen) -> Vec<Act> + Send + 'static,
    ) -> Self {
        let upstream = Upstream::start(script).await;
        for provider in &PROVIDERS {
            raw.gateway.base_urls.set(provider.id, &upstream.url());
        }
        let dir = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", dir.path().join("rb.sqlite").display());
        let store = FaultyStore::new(rb_store::open(&address).await.unwrap());
        let app = App::new(raw.clone().check().unwrap(), Arc::clone(&store) as Arc<dyn Store>);
        let app = app.await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stage =
            Self { upstream, store, raw, app, address, end: None, serving: None, _dir: dir };
        stage.serve(listener);
        stage
    }

    fn serve(&mut self, listener: TcpListener) {
        let (end, ended) = oneshot::channel::<()>();
        let app = Shared::clone(&self.app);
        self.end = Some(end);
        self.serving = Some(tokio::spawn(async move {
            rb_server::serve(app, listener, async { drop(ended.await) }).await.unwrap();
        }));
    }

    /// Shuts the server down and starts another on the same data.
    async fn restart(&mut self) {
        drop(self.end.take());
        self.serving.take().unwrap().await.unwrap();
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        self.app = App::new(self.raw.clone().check().unwrap(), store).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.address = listener.local_addr().unwrap();
        self.serve(listener);
    }

    /// Starts another node on the same store, until the test ends.
    async fn neighbour(&self) -> SocketAddr {
        self.store.set_shared(true);
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let app = App::new(self.raw.clone().check().unwrap(), store).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(rb_server::serve(app, listener, std::future::pending()));
        address
    }

    /// Creates a key of this gateway, which then requires one.
    async fn key(&self) -> String {
        self.key_of("").await
    }

    /// Creates a key of a project.
    async fn key_of(&self, project: &str) -> String {
        let (secret, row) = auth::create_key(KeyKind::Test, DEFAULT_ORG, project, "trial").unwrap();
        self.store.apply(vec![Change::PutKey(Box::new(row))]).await.unwrap();
        self.app.runtime.keys.invalidate();
        secret
    }

    /// Sends one request and returns the complete response.
    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        client::post(self.address, path, headers, body.as_bytes()).await
    }

    /// Stored steps of a run without its closing step.
    async fn steps(&self, run_id: &str) -> Vec<StepRow> {
        let mut rows = self.rows(run_id).await;
        rows.retain(|row| !final_answer::is_closing(row));
        rows
    }

    /// Stored steps of a run, once the write queue is empty.
    async fn rows(&self, run_id: &str) -> Vec<StepRow> {
        assert!(self.app.gateway.flush().await, "the store must be available");
        let run = RunKey { org: DEFAULT_ORG.to_owned(), run_id: run_id.to_owned() };
        self.store.steps(&run, 0, 1_000).await.unwrap()
    }

    fn failed_open(&self) -> u64 {
        self.app.runtime.metrics.failed_open.get()
    }
}

/// Returns the default test settings, with generous timeouts for busy machines.
fn patient() -> RawConfig {
    let mut raw = RawConfig::default();
    raw.gateway.decision_timeout = ARRIVES_WITHIN;
    raw
}

/// Waits until a condition holds.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < ARRIVES_WITHIN, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
