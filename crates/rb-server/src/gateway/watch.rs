//! One request of a conversation, watched: which run it belongs to, what is new in it, what is due, and the bytes that
//! go out. Whatever fails here, the request goes out as it came.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use bytes::Bytes;
use futures_util::FutureExt as _;
use rb_engine::record::FIRST_CALL;
use rb_engine::run::Stop;
use rb_store::{Change, RunKey, StepRow};
use rb_wire::answer::Answer;
use rb_wire::chain::Continuity;
use rb_wire::chat::Chat;
use rb_wire::dialects::Dialect;
use rb_wire::splice::Splices;
use rb_wire::steer::{self, Planted};
use rb_wire::steps::Carry;
use rb_wire::transcripts::{RunInput, RunStep};
use serde_json::Value;

use super::conversation::Conversation;
use super::conversations::{head, lock};
use super::ledger::{Cause, Request};
use super::mode::Mode;
use super::{Gateway, Placement};
use crate::app::{App, Shared};
use crate::auth::Caller;
use crate::clock::now_ms;
use crate::events::StepEvent;
use crate::live::{Live, Turn};
use crate::steering::look_up;

/// Guidance that is not ready by then is left out.
const DECIDED_WITHIN: Duration = Duration::from_millis(20);
/// Of each text of a step, so many characters are read and kept.
const TEXT_CHARS_MAX: usize = 64_000;
/// Of the final answer, so many characters are kept.
const ANSWER_CHARS_MAX: usize = 4_000;

/// What becomes of a request.
pub(super) enum Verdict {
    /// It goes out as it came, and nobody looks at the answer.
    Unwatched,
    /// It is not sent: a budget is used up.
    Refused { status: u16, why: String },
    /// It goes out, perhaps changed, and the answer is looked at.
    Watched(Box<Watched>),
}

/// A request on its way.
pub(super) struct Watched {
    /// What goes out, where it is not what came.
    pub(super) body: Option<Bytes>,
    /// What the header for betas must hold.
    pub(super) beta: Option<&'static str>,
    run: RunKey,
    /// The caller's name, for budgets.
    key: Arc<str>,
    model: String,
    upstream: String,
    row: StepRow,
    /// What people say to the agent with this request.
    words: Vec<String>,
    /// The new fragment and its place.
    planted: Option<Planted>,
    /// Guidance stands in the request, in any placement.
    is_steered: bool,
    is_continued: bool,
    begun: Instant,
}

/// A request as it came.
pub(super) struct Incoming<'a> {
    pub(super) caller: &'a Caller,
    pub(super) upstream: &'a str,
    pub(super) dialect: &'static Dialect,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a Bytes,
    pub(super) mode: Mode,
}

/// Watches a request. What takes too long is left out, and a fault of ours is counted and goes no further.
pub(super) async fn watch(app: &Shared, incoming: Incoming<'_>) -> Verdict {
    if incoming.mode == Mode::Off {
        return Verdict::Unwatched;
    }
    let Ok(chat) = Chat::scan(incoming.dialect, incoming.body) else {
        return Verdict::Unwatched; // the provider will say what is wrong with it
    };
    let deciding = AssertUnwindSafe(decide(app, &incoming, &chat)).catch_unwind();
    if let Ok(Some(verdict)) = deciding.await {
        return verdict;
    }
    app.metrics.failed_open.inc();
    Verdict::Unwatched
}

/// Gives up on what takes too long.
async fn soon<T>(what: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(DECIDED_WITHIN, what).await.ok()
}

async fn decide(app: &Shared, incoming: &Incoming<'_>, chat: &Chat<'_>) -> Option<Verdict> {
    let gateway = &app.gateway;
    let (org, project) = incoming.caller.home(None, None);
    let run = soon(gateway.run_of(app, &org, incoming, chat)).await?;
    let incoming = &Incoming { mode: gateway.mode_in_arm(incoming.mode, &run), ..*incoming };
    let mut turn = soon(app.live.turn(&run)).await?;
    let conversation = soon(gateway.conversations.of(app, &run)).await??;
    let continuity = lock(&conversation).continuity(chat);
    if is_aside(continuity, chat) {
        return Some(Verdict::Unwatched);
    }
    soon(ensure_live(app, incoming, &run, &project, chat, &mut turn)).await??;
    let live = turn.as_mut()?;
    if let Some(why) = soon(gateway.budgets.exceeded(app, &incoming.caller.name, &run)).await? {
        return Some(Verdict::Refused { status: 429, why });
    }
    let here = Here { app, incoming, chat, conversation: &conversation, run: &run };
    Some(here.step_forward(live, continuity).await)
}

/// Everything around one request.
struct Here<'a> {
    app: &'a Shared,
    incoming: &'a Incoming<'a>,
    chat: &'a Chat<'a>,
    conversation: &'a Mutex<Conversation>,
    run: &'a RunKey,
}

impl Here<'_> {
    /// Asks the engine about what is new, and writes what is due into the request.
    async fn step_forward(&self, live: &mut Live, continuity: Continuity) -> Verdict {
        let (app, gateway, run) = (self.app, &self.app.gateway, self.run);
        let model = self.chat.model().into_owned();
        let is_open = self.incoming.mode == Mode::Steer && !lock(self.conversation).ledger.is_blown;
        let mut rows = self.new_rows(continuity);
        let newest = rows.pop();
        let mut words = Vec::new();
        for earlier in &mut rows {
            live.read(earlier);
        }
        for earlier in rows {
            gateway.record_step(app, earlier);
        }
        let mut row = match newest {
            Some(mut row) => {
                let ask = live.ask(&mut row);
                let found = soon(look_up(app, &run.org, &model, &ask.queries)).await;
                let found = found.map(|answers| answers.found).unwrap_or_default();
                words = if is_open { app.hands.take(run) } else { Vec::new() };
                let plan = live.plan(ask, &found, &words, &model, &mut row);
                if let Some(Stop::TokenBudget { used, limit }) = plan.stop {
                    app.hands.put_back(run, words);
                    let why = format!("the token budget of this run is used up: {used} of {limit}");
                    return Verdict::Refused { status: 429, why };
                }
                row
            }
            // The same call again: what was told for it still stands.
            None => empty_row(run, lock(self.conversation).next_index.saturating_sub(1)),
        };
        row.model.clone_from(&model);
        let conversation = lock(self.conversation);
        let told = live.told().filter(|_| is_open);
        let fragment = told.and_then(|plan| plan.fragment.as_ref());
        let text = fragment.map(|fragment| fragment.as_str().to_owned());
        let route = told.and_then(|plan| plan.route.clone());
        let change = changed(
            gateway,
            self.incoming,
            self.chat,
            &conversation,
            text.as_deref(),
            route.as_deref(),
        );
        gateway.save(run, &conversation);
        drop(conversation);
        gateway.record_step(app, row.clone());
        Verdict::Watched(Box::new(Watched {
            body: change.body,
            beta: change.planted.as_ref().and_then(|planted| planted.channel.beta()),
            run: run.clone(),
            key: Arc::clone(&self.incoming.caller.name),
            model: route.unwrap_or(model),
            upstream: self.incoming.upstream.to_owned(),
            row,
            words,
            is_steered: change.is_steered,
            planted: change.planted,
            is_continued: matches!(continuity, Continuity::Continues { .. } | Continuity::Retry),
            begun: Instant::now(),
        }))
    }

    /// A row for each new step; before the first step, one for the first call.
    fn new_rows(&self, continuity: Continuity) -> Vec<StepRow> {
        let mut conversation = lock(self.conversation);
        let mut carry = Carry::default();
        let new = conversation.take(self.chat, continuity, &mut carry);
        let head = head(conversation.newest(), &self.chat.model());
        self.app.gateway.conversations.note_head(self.run, &conversation.head, &head);
        conversation.head = head;
        let mut rows = Vec::new();
        for step in &new.steps {
            rows.push(row_of(self.run, step, conversation.next_index));
            conversation.next_index = conversation.next_index.saturating_add(1);
        }
        if rows.is_empty() && conversation.next_index == 0 {
            let row = empty_row(self.run, 0);
            rows.push(StepRow { thought: FIRST_CALL.to_owned(), ..row });
            conversation.next_index = 1;
        }
        rows
    }
}

struct Changed {
    body: Option<Bytes>,
    planted: Option<Planted>,
    is_steered: bool,
}

/// The request with everything that belongs into it.
fn changed(
    gateway: &Gateway,
    incoming: &Incoming<'_>,
    chat: &Chat<'_>,
    conversation: &Conversation,
    text: Option<&str>,
    route: Option<&str>,
) -> Changed {
    let model = chat.model();
    let mut splices = Splices::new(chat.body);
    let (mut planted, mut is_steered) = (None, false);
    match gateway.config.placement {
        Placement::Tail => {
            let channels = gateway.channels.of(incoming.upstream, &model, chat.dialect);
            let earlier = match incoming.mode {
                Mode::Steer => conversation.planted.as_slice(),
                Mode::Observe | Mode::Off => &[],
            };
            let tail = steer::tail(chat, earlier, text, &channels);
            is_steered = tail.planted.is_some();
            planted = tail.planted;
            splices.extend(tail.splices);
        }
        Placement::System => {
            if let Some(text) = text {
                splices.extend(steer::system(chat, text));
                is_steered = true;
            }
        }
    }
    if let Some(route) = route {
        splices.extend(steer::model(chat, route));
    }
    let body = (!splices.is_empty()).then(|| Bytes::from(splices.apply()));
    Changed { body, planted, is_steered }
}

/// A small request that a client makes beside the conversation, under the same name: for a title, say.
fn is_aside(continuity: Continuity, chat: &Chat<'_>) -> bool {
    continuity == Continuity::Compacted && chat.messages.len() <= 2 && !chat.has_tools
}

async fn ensure_live(
    app: &Shared,
    incoming: &Incoming<'_>,
    run: &RunKey,
    project: &str,
    chat: &Chat<'_>,
    turn: &mut Turn,
) -> Option<()> {
    if turn.is_some() {
        return Some(());
    }
    let mut live = Live::load(app, run, None).await.ok()?;
    if !live.is_known {
        let start = app.gateway.start_of(incoming, run, project, chat);
        live = Live::begin(app, &start).await.ok()?;
        app.gateway.recorder.put(Change::StartRun(Box::new(start)));
    }
    **turn = Some(live);
    Some(())
}

fn empty_row(run: &RunKey, step_index: u32) -> StepRow {
    StepRow { run: run.clone(), step_index, at_ms: now_ms(), ..StepRow::default() }
}

fn row_of(run: &RunKey, step: &RunStep<'_>, step_index: u32) -> StepRow {
    let cut = |text: &str| match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    };
    let (action_input, input_is_structured) = match &step.input {
        RunInput::None => (None, false),
        RunInput::Text(text) => (Some(cut(text)), false),
        RunInput::Structured(json) => (Some(cut(json)), true),
    };
    StepRow {
        user_input: cut(&step.user_input),
        thought: cut(&step.thought),
        action: (!step.tool.is_empty()).then(|| step.tool.to_string()),
        action_input,
        input_is_structured,
        observation: (!step.observation.is_empty()).then(|| cut(&step.observation)),
        is_error: step.is_error,
        ..empty_row(run, step_index)
    }
}

impl Watched {
    /// The provider refused the request as we changed it and took it as it came.
    pub(super) async fn refused(&mut self, app: &Shared) {
        if let Some(planted) = self.planted.take() {
            app.gateway.channels.refuse(&self.upstream, &self.model, planted.channel);
        }
        self.is_steered = false;
        let mut turn = app.live.turn(&self.run).await;
        if let Some(live) = turn.as_mut() {
            live.untell();
        }
        app.hands.put_back(&self.run, std::mem::take(&mut self.words));
        clear_guidance(&mut self.row);
        app.gateway.record_step(app, self.row.clone());
    }

    /// The provider took the request: what was put into it stays there. Before the first byte of the answer reaches
    /// the client, so that its next request finds it.
    pub(super) async fn accepted(&mut self, app: &Shared) {
        let Some(planted) = self.planted.clone() else { return };
        let Some(conversation) = app.gateway.conversations.of(app, &self.run).await else { return };
        let mut conversation = lock(&conversation);
        conversation.planted.push(planted);
        app.gateway.save(&self.run, &conversation);
    }

    /// The provider has answered, wholly or until the client went away.
    pub(super) async fn answered(mut self, app: Shared, answer: Answer, is_whole: bool) {
        let usage = answer.usage.unwrap_or_default();
        let (model, row) = (self.answering_model(&answer), &mut self.row);
        row.tokens = rb_store::Tokens {
            total: usage.input().saturating_add(usage.output),
            input: usage.input(),
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        };
        row.cost_usd = app.prices.cost_usd(&model, &row.tokens, row.at_ms);
        row.model = model;
        let said: String = answer.thought.chars().take(ANSWER_CHARS_MAX).collect();
        let asked: Vec<Value> =
            answer.calls.iter().map(|call| Value::from(call.tool.as_str())).collect();
        row.metadata.insert("answer".to_owned(), Value::from(said));
        row.metadata.insert("tool_calls".to_owned(), Value::from(asked));
        row.metadata
            .insert("latency_ms".to_owned(), Value::from(self.begun.elapsed().as_secs_f64() * 1e3));
        if !is_whole || !answer.is_complete {
            row.metadata.insert("is_cut_off".to_owned(), Value::from(true));
        }
        app.gateway.budgets.spend(&app, &self.key, row);
        let row = self.row.clone();
        self.note_cache(&app, &usage).await;
        app.gateway.record_step(&app, row);
    }

    fn answering_model(&self, answer: &Answer) -> String {
        if answer.model.is_empty() { self.model.clone() } else { answer.model.clone() }
    }

    async fn note_cache(&self, app: &Shared, usage: &rb_wire::usage::TokenUse) {
        let Some(conversation) = app.gateway.conversations.of(app, &self.run).await else { return };
        let mut conversation = lock(&conversation);
        let request = Request { is_changed: self.is_steered, is_continued: self.is_continued };
        let cause = conversation.ledger.note(usage, request);
        if cause == Some(Cause::Ours) {
            tracing::warn!(
                run = self.run.run_id,
                share = conversation.ledger.read_share(),
                "steering seems to cost this run its cache; it is steered no more"
            );
            app.metrics.cache_fuses.inc();
        }
        // The sums go with the next request; what stops the steering must not be forgotten.
        if cause.is_some() {
            app.gateway.save(&self.run, &conversation);
        }
    }
}

/// What was planned did not reach the model.
fn clear_guidance(row: &mut StepRow) {
    row.injections.clear();
    row.injection_sources.clear();
    row.intervention_texts.clear();
}

impl Gateway {
    /// Queues a step for the store and tells whoever listens.
    fn record_step(&self, app: &App, row: StepRow) {
        app.events.tell(StepEvent {
            run_id: row.run.run_id.clone(),
            step_index: row.step_index,
            org_id: row.run.org.clone(),
            project_id: row.project.clone(),
            total_score: row.total_score,
            fired: row.fired.clone(),
        });
        self.recorder.put(Change::PutStep(Box::new(row)));
    }
}
