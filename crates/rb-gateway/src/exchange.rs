//! A watched request on its way: what the provider made of it, and what it answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Uri};
use bytes::Bytes;
use rb_store::{RunKey, StepRow, Tokens};
use rb_wire::dialects::Dialect;
use rb_wire::inject::Injection;
use rb_wire::model::TokenUsage;
use rb_wire::response::Response;
use serde_json::Value;

use crate::Gateway;
use crate::NAMELESS;
use crate::budget::Spend;
use crate::cache_guard::{Cause, Request};
use crate::conversation::store::answer_head;
use crate::mode::Mode;
use rb_runtime::auth::Caller;
use rb_runtime::clock::now_ms;
use rb_runtime::runs::Decided;

/// Of the final answer, so many characters are kept.
const ANSWER_CHARS_MAX: usize = 4_000;

/// A request as it came.
#[derive(Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) upstream: &'a str,
    pub(crate) dialect: &'static dyn Dialect,
    /// Path and query of the provider's URL.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    pub(crate) mode: Mode,
}

/// Maximum time for which the assessment of a final answer waits for the store.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);

/// What was done to a request.
#[derive(Default)]
pub(crate) struct Change {
    /// What goes out, where it is not what came.
    pub(crate) body: Option<Bytes>,
    /// Path and query to send, if they differ from the received ones: some dialects have the model there.
    pub(crate) target: Option<String>,
    /// The new fragment and its place.
    pub(crate) planted: Option<Injection>,
    /// New guidance stands in the request, in any placement.
    pub(crate) is_steered: bool,
}

/// A request on its way.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one request, each asked for by name"
)]
pub(crate) struct Watched {
    /// What goes out, where it is not what came.
    pub(crate) body: Option<Bytes>,
    /// Path and query to send, if they differ from the received ones.
    target: Option<String>,
    /// The caller's name, for budgets.
    key: Arc<str>,
    /// The model that was asked for, and the one that takes the call.
    asked: String,
    model: String,
    upstream: String,
    /// Step with its guidance, which counts as shown once the provider accepts the request.
    decided: Decided,
    /// It stands beside the conversation: it costs, and is no step.
    is_aside: bool,
    planted: Option<Injection>,
    is_steered: bool,
    is_continued: bool,
    /// The provider keeps the answer, and the next request may go on from it without bringing it.
    is_kept: bool,
    begun: Instant,
}

impl Watched {
    /// A call of the agent.
    pub(crate) fn step(
        incoming: &Incoming<'_>,
        decided: Decided,
        change: Change,
        model: String,
        is_continued: bool,
    ) -> Self {
        Self {
            body: change.body,
            target: change.target,
            key: Arc::clone(&incoming.caller.name),
            asked: decided.row.model.clone(),
            model,
            upstream: incoming.upstream.to_owned(),
            decided,
            is_aside: false,
            planted: change.planted,
            is_steered: change.is_steered,
            is_continued,
            is_kept: false,
            begun: Instant::now(),
        }
    }

    /// Returns the address to send the request to, if it differs from the received one.
    pub(crate) fn uri(&self, received: &Uri) -> Option<Uri> {
        let mut parts = received.clone().into_parts();
        parts.path_and_query = Some(self.target.as_ref()?.parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// The same where the provider keeps the answer.
    pub(crate) fn kept(self, is_kept: bool) -> Self {
        Self { is_kept, ..self }
    }

    /// A request beside the conversation of a run.
    pub(crate) fn aside(incoming: &Incoming<'_>, run: &RunKey, model: &str) -> Self {
        let row = StepRow {
            run: run.clone(),
            at_ms: now_ms(),
            model: model.to_owned(),
            ..StepRow::default()
        };
        let decided = Decided { row: Arc::new(row), ..Decided::default() };
        let step = Self::step(incoming, decided, Change::default(), model.to_owned(), false);
        Self { is_aside: true, ..step }
    }

    /// Name of the decision in the request's tracing span.
    pub(crate) fn decision(&self) -> &'static str {
        match (self.is_aside, self.is_steered) {
            (true, _) => "auxiliary",
            (false, true) => "steered",
            (false, false) => "observed",
        }
    }

    pub(crate) fn run_id(&self) -> &str {
        &self.decided.row.run.run_id
    }

    /// The provider refused the request as we changed it and took it as it came.
    pub(crate) async fn refused(&mut self, gateway: &Arc<Gateway>) {
        if self.model != self.asked {
            // The model may be the reason: it is left alone before the channel is blamed.
            if let Ok(conversation) = gateway.conversations.of(&self.decided.row.run).await {
                conversation.lock().switching.refused();
            }
            self.model.clone_from(&self.asked);
        } else if let Some(planted) = &self.planted {
            gateway.channels.refuse(&self.upstream, &self.model, planted.channel);
        }
        self.untold(gateway).await;
    }

    /// What was planned for this call did not reach the model.
    pub(crate) async fn untold(&mut self, gateway: &Arc<Gateway>) {
        if self.is_aside {
            return;
        }
        self.planted = None;
        self.is_steered = false;
        let messages = std::mem::take(&mut self.decided.messages);
        gateway.runtime.runs.discard_plan(&mut self.decided.row, messages).await;
        self.keep_row(gateway).await;
    }

    /// The provider took the request: what was put into it stays there. Before the first byte of the answer reaches
    /// the client, so that its next request finds it.
    pub(crate) async fn accepted(&mut self, gateway: &Arc<Gateway>) {
        if self.is_steered {
            gateway.runtime.runs.guidance_delivered(&self.decided);
        }
        let is_routing = !gateway.config.routing.is_empty();
        if self.is_aside || (self.planted.is_none() && !is_routing) {
            return;
        }
        let run = &self.decided.row.run;
        let Ok(conversation) = gateway.conversations.of(run).await else { return };
        {
            let mut conversation = conversation.lock();
            conversation.planted.extend(self.planted.clone());
            conversation.switching.taken(&self.asked, &self.model);
        }
        gateway.save(run, &conversation).await;
    }

    /// The provider has answered, wholly or until the client went away.
    pub(crate) async fn answered(
        mut self,
        gateway: Arc<Gateway>,
        answer: Response,
        is_whole: bool,
    ) {
        let usage = answer.usage.unwrap_or_default();
        let model = self.answering_model(&answer);
        let tokens = Tokens {
            total: usage.input().saturating_add(usage.output),
            input: usage.input(),
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        };
        let usd = gateway.runtime.prices.cost_usd(&model, &tokens, self.decided.row.at_ms);
        let spent = Spend { tokens: tokens.total, usd };
        gateway.budgets.spend(&self.key, &self.decided.row.run, spent);
        if self.is_aside {
            self.note_aside(&gateway, spent).await;
            return;
        }
        gateway.runtime.runs.charge(usd);
        let row = Arc::make_mut(&mut self.decided.row);
        add(&mut row.tokens, &tokens);
        row.cost_usd += usd;
        row.model = model;
        self.note_answer(&answer, is_whole);
        self.note_given(&gateway, &answer).await;
        self.note_cache(&gateway, &usage, &tokens, usd).await;
        self.keep_row(&gateway).await;
        if is_whole && is_final(&answer) {
            self.close(&gateway, &answer).await;
        }
    }

    /// Stores a final answer as the closing step of the run.
    async fn close(&self, gateway: &Arc<Gateway>, answer: &Response) {
        let row = &self.decided.row;
        let Ok(conversation) = gateway.conversations.of(&row.run).await else { return };
        let closing = {
            let conversation = conversation.lock();
            if conversation.next_index != row.step_index.saturating_add(1) {
                return; // the run has continued
            }
            StepRow {
                run: row.run.clone(),
                step_index: conversation.next_index,
                at_ms: now_ms(),
                user_input: conversation.unanswered_user_input().to_owned(),
                thought: answer.thought.clone(),
                model: row.model.clone(),
                ..StepRow::default()
            }
        };
        let storing = gateway.runtime.runs.close(closing);
        match tokio::time::timeout(CLOSING_TIMEOUT, storing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "closing step not stored"),
            Err(_) => tracing::debug!("closing step not stored in time"),
        }
    }

    fn note_answer(&mut self, answer: &Response, is_whole: bool) {
        let said: String = answer.thought.chars().take(ANSWER_CHARS_MAX).collect();
        let asked: Vec<Value> =
            answer.calls.iter().map(|call| Value::from(call.tool.as_str())).collect();
        let latency_ms = self.begun.elapsed().as_secs_f64() * 1e3;
        let metadata = &mut Arc::make_mut(&mut self.decided.row).metadata;
        metadata.insert("answer".to_owned(), Value::from(said));
        metadata.insert("tool_calls".to_owned(), Value::from(asked));
        metadata.insert("latency_ms".to_owned(), Value::from(latency_ms));
        metadata.remove("is_cut_off");
        if !is_whole || !answer.is_complete {
            metadata.insert("is_cut_off".to_owned(), Value::from(true));
        }
    }

    /// Remembers an answer that the next request goes on from, with it or without.
    async fn note_given(&self, gateway: &Arc<Gateway>, answer: &Response) {
        let (run, conversations) = (&self.decided.row.run, &gateway.conversations);
        let is_nameless = run.run_id.starts_with(NAMELESS);
        if !self.is_kept && !is_nameless {
            return;
        }
        let Ok(conversation) = conversations.of(run).await else { return };
        let is_saved = {
            let mut conversation = conversation.lock();
            let is_first = conversation.next_index <= 1;
            if is_nameless
                && let Some(mark) = conversations.note_answer(run, &self.asked, answer)
                && is_first
            {
                conversation.mark = mark; // later ones are seen in the next request
            }
            if self.is_kept {
                conversation.answered(answer);
                if !answer.id.is_empty() {
                    let before = answer_head(&conversation.answer);
                    conversations.note_head(run, &before, &answer_head(&answer.id));
                    conversation.answer.clone_from(&answer.id);
                }
            }
            // A history holds several answers, and may be found by any of the last; only the first has none before it.
            self.is_kept || is_first
        };
        if is_saved {
            gateway.save(run, &conversation).await;
        }
    }

    /// Stores the row, and keeps it for a call that is made again.
    async fn keep_row(&self, gateway: &Arc<Gateway>) {
        if let Ok(conversation) = gateway.conversations.of(&self.decided.row.run).await {
            let mut conversation = conversation.lock();
            let latest = conversation.latest.as_mut();
            if let Some(latest) = latest.filter(|row| row.step_index == self.decided.row.step_index)
            {
                *latest = Arc::clone(&self.decided.row);
            }
        }
        gateway.runtime.runs.amend(Arc::clone(&self.decided.row));
    }

    async fn note_aside(&self, gateway: &Arc<Gateway>, spent: Spend) {
        let run = &self.decided.row.run;
        let Ok(conversation) = gateway.conversations.of(run).await else { return };
        let is_begun = {
            let mut conversation = conversation.lock();
            conversation.asides += spent;
            conversation.next_index > 0
        };
        // A run of which no step is known yet is not stored for the sake of an aside.
        if is_begun {
            gateway.save(run, &conversation).await;
        }
    }

    fn answering_model(&self, answer: &Response) -> String {
        if answer.model.is_empty() { self.model.clone() } else { answer.model.clone() }
    }

    async fn note_cache(
        &self,
        gateway: &Arc<Gateway>,
        usage: &TokenUsage,
        tokens: &Tokens,
        usd: f64,
    ) {
        let run = &self.decided.row.run;
        let Ok(conversation) = gateway.conversations.of(run).await else { return };
        let (cause, share) = {
            let mut conversation = conversation.lock();
            conversation.switching.used(tokens, usd, now_ms());
            let request = Request { is_changed: self.is_steered, is_continued: self.is_continued };
            (conversation.ledger.note(usage, request), conversation.ledger.read_share())
        };
        if cause == Some(Cause::Ours) {
            tracing::warn!(
                run = run.run_id,
                share,
                "steering seems to cost this run its cache; it is steered no more"
            );
            gateway.runtime.metrics.cache_guards_tripped.inc();
        }
        // The sums go with the next request; what stops the steering must not be forgotten.
        if cause.is_some() {
            gateway.save(run, &conversation).await;
        }
    }
}

/// Returns `true` for an answer after which the agent does nothing.
fn is_final(answer: &Response) -> bool {
    answer.is_complete && answer.calls.is_empty() && !answer.thought.trim().is_empty()
}

/// A call that was made again costs again.
fn add(sum: &mut Tokens, more: &Tokens) {
    sum.total = sum.total.saturating_add(more.total);
    sum.input = sum.input.saturating_add(more.input);
    sum.output = sum.output.saturating_add(more.output);
    sum.cache_read = sum.cache_read.saturating_add(more.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(more.cache_write);
}
