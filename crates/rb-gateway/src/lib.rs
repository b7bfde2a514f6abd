//! The gateway: a proxy in front of model providers that steers any program after one changed base URL.
//!
//! `inspect` identifies the run of a request, adds its new steps and edits the body; `proxy` forwards it;
//! `response_tap` forwards the response and parses a copy; `exchange` records it. If one of them fails, request and
//! response pass unmodified.

/// Base URLs of the providers.
mod base_urls;
/// Hard limits on tokens and dollars.
mod budget;
/// Prompt cache tracking and its circuit breaker.
mod cache_guard;
/// Injection channels by model.
mod channels;
/// Settings.
mod config;
/// State of conversations.
mod conversation;
/// One request on its way to the provider and back.
mod exchange;
/// Headers between client and provider.
mod headers;
/// Inspection of requests.
mod inspect;
/// Steer, observe or off.
mod mode;
/// Changes of the model.
mod model_routing;
/// Proxying.
mod proxy;
/// Response bodies.
mod response_tap;
/// Addresses of providers.
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::routing::any;
use parking_lot::Mutex;
use rb_store::{Change, ConversationRow, RunKey, RunStart};
use rb_wire::identity::{self, Source};
use rb_wire::providers::PROVIDERS;
use rb_wire::request::ParsedRequest;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

pub use base_urls::BaseUrls;
pub use budget::BudgetConfig;
pub use config::GatewayConfig;
pub use headers::KEY as KEY_HEADER;
pub use mode::{Experiment, Mode};
pub use proxy::rate_limited;
pub use upstream::RawUpstream;

use budget::Budgets;
use channels::Channels;
use conversation::state::Conversation;
use conversation::store::Conversations;
use exchange::Incoming;
use proxy::UpstreamClient;
use rb_runtime::Runtime;
use rb_runtime::clock::now_ms;
use upstream::Upstreams;

/// A setting that cannot work.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("`{name}` is `{value}`: {wanted}")]
pub struct ConfigError {
    pub name: &'static str,
    pub value: String,
    pub wanted: &'static str,
}

/// State of the gateway.
pub struct Gateway {
    runtime: Arc<Runtime>,
    config: GatewayConfig,
    upstreams: Upstreams,
    upstream_client: UpstreamClient,
    channels: Channels,
    conversations: Conversations,
    budgets: Budgets,
    /// Locked for reading while a response is being recorded.
    writing: Arc<RwLock<()>>,
}

/// Maximum time to store pending changes at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

impl Gateway {
    /// Validates the configuration.
    pub fn new(
        config: GatewayConfig,
        runtime: Arc<Runtime>,
        max_runs: usize,
    ) -> Result<Self, ConfigError> {
        let store = &runtime.store;
        let queue = runtime.write_queue.clone();
        let budget = config.budget.check()?;
        Ok(Self {
            upstreams: Upstreams::new(&config.base_urls, &config.upstreams)?,
            upstream_client: proxy::upstream_client(),
            channels: Channels::default(),
            conversations: Conversations::new(max_runs, Arc::clone(store), config.decision_timeout),
            budgets: Budgets::new(budget, max_runs, Arc::clone(store), queue),
            writing: Arc::default(),
            config,
            runtime,
        })
    }

    /// Identifies the run of a request: the one it names, the one it continues, or a new one.
    async fn run_of(
        &self,
        org: &str,
        incoming: &Incoming<'_>,
        chat: &ParsedRequest<'_>,
    ) -> RunIdentity {
        let header = |name: &str| incoming.headers.get(name).and_then(|value| value.to_str().ok());
        let key = |run_id: String| RunKey { org: org.to_owned(), run_id };
        if let Some(name) = identity::run_name(header, Some(chat)) {
            return RunIdentity {
                run: key(run_id(name.source, &name.id)),
                parent: name.parent.map(|parent| run_id(name.source, &parent)).unwrap_or_default(),
                is_session_scoped: matches!(name.source, Source::ClaudeCode | Source::Session),
            };
        }
        let run = match self.conversations.find(org, chat).await {
            Some(run) => run,
            None => key(format!("{ANONYMOUS_PREFIX}{}", uuid::Uuid::now_v7().simple())),
        };
        RunIdentity { run, parent: String::new(), is_session_scoped: false }
    }

    /// Describes a new run.
    fn start_metadata(
        &self,
        incoming: &Incoming<'_>,
        RunIdentity { run, parent, .. }: &RunIdentity,
        project: &str,
        chat: &ParsedRequest<'_>,
    ) -> RunStart {
        let mut metadata = Map::new();
        metadata.insert("mode".to_owned(), Value::from(incoming.mode.name()));
        metadata.insert("upstream".to_owned(), Value::from(incoming.upstream));
        if let Some(experiment) = &self.config.experiment {
            metadata.insert("experiment_id".to_owned(), Value::from(experiment.id.as_str()));
            metadata.insert("arm".to_owned(), Value::from(experiment.arm(run)));
        }
        if !self.config.routing.is_empty() {
            let routes = self
                .config
                .routing
                .iter()
                .map(|(state, model)| (state.clone(), Value::from(model.as_str())));
            metadata.insert(
                rb_runtime::runs::assessment::MODEL_ROUTING.to_owned(),
                Value::Object(routes.collect()),
            );
        }
        RunStart {
            run: run.clone(),
            project: project.to_owned(),
            at_ms: now_ms(),
            agent_name: agent_name(incoming.headers),
            task: chat
                .task()
                .map(|task| task.chars().take(MAX_TASK_CHARS).collect())
                .unwrap_or_default(),
            model: chat.model().into_owned(),
            framework: "gateway".to_owned(),
            parent: parent.clone(),
            key_name: incoming.caller.key_name.to_string(),
            metadata,
            ..RunStart::default()
        }
    }

    /// Downgrades steering to observing for runs of the control arm.
    fn experiment_mode(&self, mode: Mode, run: &RunKey) -> Mode {
        let is_control =
            self.config.experiment.as_ref().is_some_and(|experiment| experiment.arm(run) == "off");
        if is_control && mode == Mode::Steer { Mode::Observe } else { mode }
    }

    /// Returns the mode of a request: its header, else the key's mode, else the default.
    fn mode(&self, headers: &HeaderMap, key: &str) -> Mode {
        let asked = headers.get(headers::MODE).and_then(|value| value.to_str().ok());
        asked
            .and_then(Mode::from_name)
            .or_else(|| self.config.key_modes.get(key).copied())
            .unwrap_or(self.config.mode)
    }

    /// Waits until all pending changes are stored; `false` after a timeout.
    pub async fn flush(&self) -> bool {
        let flushing = async {
            drop(self.writing.write().await);
            self.runtime.write_queue.flush().await;
        };
        tokio::time::timeout(FLUSH_TIMEOUT, flushing).await.is_ok()
    }

    /// Stores a conversation with the newest decision of its run.
    async fn save(&self, run: &RunKey, conversation: &Mutex<Conversation>) {
        let row = || stored(run, &conversation.lock());
        self.runtime.runs.save_companion(run, self.config.decision_timeout, row).await;
    }
}

/// Change that stores a conversation.
fn stored(run: &RunKey, conversation: &Conversation) -> Change {
    // A named run is found by its name.
    let is_anonymous = run.run_id.starts_with(ANONYMOUS_PREFIX);
    let known = |by: &String| if is_anonymous { by.clone() } else { String::new() };
    Change::PutConversation(Box::new(ConversationRow {
        run: run.clone(),
        head: known(&conversation.head),
        answer: known(&conversation.answer),
        mark: known(&conversation.mark),
        state: conversation.write(),
        at_ms: now_ms(),
    }))
}

/// Run of a request.
struct RunIdentity {
    run: RunKey,
    /// Run that started this one, or empty.
    parent: String,
    /// The name is a session id, under which a client sends more than one conversation.
    is_session_scoped: bool,
}

impl RunIdentity {
    /// Run of a subagent in the same session, identified by its first message.
    fn subagent(&self, chat: &ParsedRequest<'_>) -> Self {
        let first = chat.messages.first().map(|message| message.hash).unwrap_or_default();
        let run_id = format!("{}/{first}", self.run.run_id);
        let run = RunKey { run_id, ..self.run.clone() };
        Self { run, parent: self.run.run_id.clone(), is_session_scoped: self.is_session_scoped }
    }
}

/// Prefix of generated run ids.
const ANONYMOUS_PREFIX: &str = "gw-";

const MAX_TASK_CHARS: usize = 4_000;

/// Run id for a name; the prefix keeps names of different origin apart.
fn run_id(source: Source, id: &str) -> String {
    match source {
        Source::Header => id.to_owned(),
        Source::ClaudeCode => format!("claude-code:{id}"),
        Source::Codex => format!("codex:{id}"),
        Source::Session => format!("session:{id}"),
        Source::Conversation => format!("conversation:{id}"),
        Source::CacheKey => format!("cache-key:{id}"),
        Source::UserId => format!("user-id:{id}"),
    }
}

/// Name of the client: first word of its user agent, without the version.
fn agent_name(headers: &HeaderMap) -> String {
    let agent = headers.get("user-agent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default().to_owned()
}

/// Routes of the gateway.
pub fn routes<S>(gateway: Arc<Gateway>) -> Router<S> {
    let further = Router::new().route("/up/{name}/{*path}", any(proxy::named_upstream));
    let routes = PROVIDERS.iter().fold(further, |routes, provider| {
        let handler = move |State(gateway): State<Arc<Gateway>>, request: Request| {
            proxy::provider(gateway, provider, request)
        };
        routes.route(&format!("{}/{{*path}}", provider.path_prefix), any(handler))
    });
    routes.with_state(gateway)
}
