//! The gateway: any program that calls Anthropic or OpenAI is steered by changing its base URL.
//!
//! A request passes through three hands. `watch` finds out which run it belongs to and what is due; `forward` sends
//! it, byte for byte but for what was put in; `passing` hands the answer back as it comes and reads along. If any of
//! them fails, the request goes out as it came and the answer goes back as it came.

/// What runs, keys and days may cost.
mod budgets;
/// Which forms of guidance a model takes.
mod channels;
/// What is remembered between two requests.
mod conversation;
/// The conversations in memory.
mod conversations;
/// Sending, and sending once more as it came.
mod forward;
/// Which headers pass.
mod headers;
/// The cache of a run, and the fuse.
mod ledger;
/// Steered, watched, or let through.
mod mode;
/// An answer on its way to the client.
mod passing;
/// The way from the hot path to the store.
mod recorder;
/// Which model takes a call.
mod switching;
/// Whole servers before a scripted upstream.
#[cfg(test)]
mod tests;
/// Where requests go.
mod upstreams;
/// One request, watched.
mod watch;
/// A watched request on its way, and what came back.
mod watched;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::any;
use prometheus_client::metrics::counter::Counter;
use rb_store::{Change, ConversationRow, RunKey, RunStart, Store};
use rb_wire::identity::{self, Source};
use rb_wire::request::ParsedRequest;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

pub use budgets::BudgetConfig;
pub use mode::{Experiment, Mode};
pub use upstreams::RawUpstream;

use self::budgets::Budgets;
use self::channels::Channels;
use self::conversation::Conversation;
use self::conversations::Conversations;
use self::forward::Upward;
use self::recorder::Recorder;
use self::upstreams::Upstreams;
use self::watch::Incoming;
use crate::app::{App, Shared};
use crate::config::ConfigError;
use rb_runtime::clock::now_ms;

/// Where guidance stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Behind the last words, and from then on always there: the cached beginning stays as it is.
    #[default]
    Tail,
    /// In the system prompt of one request.
    System,
}

/// The gateway's settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Anthropic's address: scheme and host, no path.
    pub anthropic: String,
    /// OpenAI's address: scheme and host, no path.
    pub openai: String,
    /// Further upstreams, under `/up/<name>`.
    pub upstreams: Vec<RawUpstream>,
    /// What is done with runs that say nothing else.
    pub mode: Mode,
    /// What is done with the runs of single keys, by key id.
    pub key_modes: BTreeMap<String, Mode>,
    /// Where guidance stands.
    pub placement: Placement,
    /// Splits runs into arms.
    pub experiment: Option<Experiment>,
    /// Hard limits.
    pub budget: BudgetConfig,
    /// The model for each state of a run, such as `SLOW = "claude-opus-4-8"`; off where nothing is named.
    pub routing: BTreeMap<String, String>,
    /// How often the model of a run may be changed.
    pub routing_switches_max: u32,
    /// Whether the standing rules of the library (E3) go into the first call of a run.
    pub standing_rules: bool,
    /// Longer requests are refused.
    pub watched_bytes_max: usize,
    /// Whoever reaches the gateway may use it without a key, whatever the API asks for: it was started for one child.
    #[serde(skip)]
    pub is_keyless: bool,
    /// An Anthropic stream that is silent for so long gets a ping. Clients show a warning after about twenty seconds.
    #[serde(skip)]
    pub silence_max: Duration,
    /// What was not found out about a request within so many milliseconds is left out, and the request goes on its way.
    #[serde(rename = "decided_within_ms", deserialize_with = "millis")]
    pub decided_within: Duration,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            anthropic: "https://api.anthropic.com".to_owned(),
            openai: "https://api.openai.com".to_owned(),
            upstreams: Vec::new(),
            mode: Mode::default(),
            key_modes: BTreeMap::new(),
            placement: Placement::default(),
            experiment: None,
            budget: BudgetConfig::default(),
            routing: BTreeMap::new(),
            routing_switches_max: 4,
            standing_rules: false,
            watched_bytes_max: 64 << 20,
            is_keyless: false,
            silence_max: Duration::from_secs(15),
            decided_within: Duration::from_millis(50),
        }
    }
}

fn millis<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Duration, D::Error> {
    u64::deserialize(given).map(Duration::from_millis)
}

/// What the gateway keeps between requests.
pub(crate) struct Gateway {
    config: GatewayConfig,
    upstreams: Upstreams,
    upward: Upward,
    channels: Channels,
    conversations: Conversations,
    budgets: Budgets,
    recorder: Recorder,
    /// Held for reading by whoever still has to write down an answer.
    writing: Arc<RwLock<()>>,
}

/// What was seen has this long to reach the store when the server ends.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

impl Gateway {
    /// Checks the addresses and starts what works in the background.
    pub(crate) fn new(
        config: GatewayConfig,
        store: Arc<dyn Store>,
        runs_max: usize,
        lost: Counter,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            upstreams: Upstreams::new(&config.anthropic, &config.openai, &config.upstreams)?,
            upward: forward::upward(),
            channels: Channels::default(),
            conversations: Conversations::new(runs_max),
            budgets: Budgets::new(config.budget.check()?, runs_max),
            recorder: Recorder::start(store, lost),
            writing: Arc::default(),
            config,
        })
    }

    /// The run a request belongs to: the one it names, the one it goes on from, or a new one.
    async fn run_of(
        &self,
        app: &App,
        org: &str,
        incoming: &Incoming<'_>,
        chat: &ParsedRequest<'_>,
    ) -> Named {
        let header = |name: &str| incoming.headers.get(name).and_then(|value| value.to_str().ok());
        let key = |run_id: String| RunKey { org: org.to_owned(), run_id };
        if let Some(name) = identity::run_name(header, Some(chat)) {
            return Named {
                run: key(run_id(name.source, &name.id)),
                parent: name.parent.map(|parent| run_id(name.source, &parent)).unwrap_or_default(),
                is_of_harness: matches!(name.source, Source::ClaudeCode | Source::Session),
            };
        }
        let run = match self.conversations.find(app, org, chat).await {
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
    pub(crate) async fn settled(&self) -> bool {
        let settling = async {
            drop(self.writing.write().await);
            self.recorder.settled().await;
        };
        tokio::time::timeout(SETTLES_WITHIN, settling).await.is_ok()
    }

    /// Stores what is remembered of a conversation: among other nodes at once, and only where none of them has gone on
    /// with the run meanwhile, since theirs is newer then.
    async fn save(&self, app: &App, run: &RunKey, conversation: &Mutex<Conversation>) {
        if !app.store.is_shared() {
            self.recorder.put(remembered(run, &conversations::lock(conversation)));
            return;
        }
        let turn = app.live_runs.lock(run).await;
        let version = turn.as_ref().map(|live| live.version);
        // What was decided while we waited for the turn is in it.
        let saved = remembered(run, &conversations::lock(conversation));
        drop(turn);
        if let Some(version) = version {
            let saving = self.agreed(app, run, version, vec![saved]);
            // What is not stored in time is missed by other nodes only.
            let _ = tokio::time::timeout(self.config.decided_within, saving).await;
        }
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

/// The routes of the gateway.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/anthropic/{*path}", any(forward::anthropic))
        .route("/openai/{*path}", any(forward::openai))
        .route("/up/{name}/{*path}", any(forward::further))
}
