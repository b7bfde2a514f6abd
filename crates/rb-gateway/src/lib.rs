//! The gateway: any program that calls Anthropic or OpenAI is steered by changing its base URL.
//!
//! A request passes through three hands. `watch` finds out which run it belongs to and what is due; `forward` sends
//! it, byte for byte but for what was put in; `passing` hands the answer back as it comes and reads along. If any of
//! them fails, the request goes out as it came and the answer goes back as it came.

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
use proxy::Upward;
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

/// What the gateway keeps between requests.
pub struct Gateway {
    runtime: Arc<Runtime>,
    config: GatewayConfig,
    upstreams: Upstreams,
    upward: Upward,
    channels: Channels,
    conversations: Conversations,
    budgets: Budgets,
    /// Held for reading by whoever still has to write down an answer.
    writing: Arc<RwLock<()>>,
}

/// What was seen has this long to reach the store when the server ends.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

impl Gateway {
    /// Checks the addresses and starts what works in the background.
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
            upward: proxy::upward(),
            channels: Channels::default(),
            conversations: Conversations::new(max_runs, Arc::clone(store), config.decided_within),
            budgets: Budgets::new(budget, max_runs, Arc::clone(store), queue),
            writing: Arc::default(),
            config,
            runtime,
        })
    }

    /// The run a request belongs to: the one it names, the one it goes on from, or a new one.
    async fn run_of(&self, org: &str, incoming: &Incoming<'_>, chat: &ParsedRequest<'_>) -> Named {
        let header = |name: &str| incoming.headers.get(name).and_then(|value| value.to_str().ok());
        let key = |run_id: String| RunKey { org: org.to_owned(), run_id };
        if let Some(name) = identity::run_name(header, Some(chat)) {
            return Named {
                run: key(run_id(name.source, &name.id)),
                parent: name.parent.map(|parent| run_id(name.source, &parent)).unwrap_or_default(),
                is_of_harness: matches!(name.source, Source::ClaudeCode | Source::Session),
            };
        }
        let run = match self.conversations.find(org, chat).await {
            Some(run) => run,
            None => key(format!("{NAMELESS}{}", uuid::Uuid::now_v7().simple())),
        };
        Named { run, parent: String::new(), is_of_harness: false }
    }

    /// What a new run says about itself.
    fn start_of(
        &self,
        incoming: &Incoming<'_>,
        Named { run, parent, .. }: &Named,
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
                .map(|task| task.chars().take(TASK_CHARS_MAX).collect())
                .unwrap_or_default(),
            model: chat.model().into_owned(),
            framework: "gateway".to_owned(),
            parent: parent.clone(),
            key_name: incoming.caller.key_name.to_string(),
            metadata,
            ..RunStart::default()
        }
    }

    /// In an experiment, a run of the vanilla arm is watched and never changed.
    fn mode_in_arm(&self, mode: Mode, run: &RunKey) -> Mode {
        let is_vanilla =
            self.config.experiment.as_ref().is_some_and(|experiment| experiment.arm(run) == "off");
        if is_vanilla && mode == Mode::Steer { Mode::Observe } else { mode }
    }

    /// What is done with a run: the request's own word, the key's mode, the default.
    fn mode(&self, headers: &HeaderMap, key: &str) -> Mode {
        let asked = headers.get(headers::MODE).and_then(|value| value.to_str().ok());
        asked
            .and_then(Mode::from_name)
            .or_else(|| self.config.key_modes.get(key).copied())
            .unwrap_or(self.config.mode)
    }

    /// Ready once everything that passed so far is stored. `false` if the store does not take it in time.
    pub async fn settled(&self) -> bool {
        let settling = async {
            drop(self.writing.write().await);
            self.runtime.write_queue.flush().await;
        };
        tokio::time::timeout(SETTLES_WITHIN, settling).await.is_ok()
    }

    /// Stores a conversation with the newest decision of its run.
    async fn save(&self, run: &RunKey, conversation: &Mutex<Conversation>) {
        let row = || remembered(run, &conversation.lock());
        self.runtime.runs.save_companion(run, self.config.decided_within, row).await;
    }
}

/// What is remembered of a conversation, for the store.
fn remembered(run: &RunKey, conversation: &Conversation) -> Change {
    // One with a name is found by its name.
    let is_nameless = run.run_id.starts_with(NAMELESS);
    let known = |by: &String| if is_nameless { by.clone() } else { String::new() };
    Change::PutConversation(Box::new(ConversationRow {
        run: run.clone(),
        head: known(&conversation.head),
        answer: known(&conversation.answer),
        mark: known(&conversation.mark),
        state: conversation.write(),
        at_ms: now_ms(),
    }))
}

/// A run as a request names it.
struct Named {
    run: RunKey,
    /// The run that started it; empty where there is none.
    parent: String,
    /// The name is that of a session, under which a harness sends more than the conversation of one agent.
    is_of_harness: bool,
}

impl Named {
    /// The run of another agent in the same session, known by the beginning of its conversation.
    fn child(&self, chat: &ParsedRequest<'_>) -> Self {
        let first = chat.messages.first().map(|message| message.hash).unwrap_or_default();
        let run_id = format!("{}/{first}", self.run.run_id);
        let run = RunKey { run_id, ..self.run.clone() };
        Self { run, parent: self.run.run_id.clone(), is_of_harness: self.is_of_harness }
    }
}

/// How the ids of runs begin that nobody gave a name.
const NAMELESS: &str = "gw-";

const TASK_CHARS_MAX: usize = 4_000;

/// The id of a run that a client names. Names of different origin do not meet.
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

/// The client's name: the first word of its user agent, without the version.
fn agent_name(headers: &HeaderMap) -> String {
    let agent = headers.get("user-agent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default().to_owned()
}

/// Routes of the gateway.
pub fn routes<S>(gateway: Arc<Gateway>) -> Router<S> {
    let further = Router::new().route("/up/{name}/{*path}", any(proxy::further));
    let routes = PROVIDERS.iter().fold(further, |routes, provider| {
        let handler = move |State(gateway): State<Arc<Gateway>>, request: Request| {
            proxy::provider(gateway, provider, request)
        };
        routes.route(&format!("{}/{{*path}}", provider.path_prefix), any(handler))
    });
    routes.with_state(gateway)
}
