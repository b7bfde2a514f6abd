//! One request between its inspection and the end of its response.

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

use crate::ANONYMOUS_PREFIX;
use crate::Gateway;
use crate::budget::Spend;
use crate::cache_guard::{Cause, Request};
use crate::conversation::store::answer_head;
use crate::mode::Mode;
use rb_runtime::auth::Caller;
use rb_runtime::clock::now_ms;
use rb_runtime::runs::Decided;

/// Maximum length of a stored response text.
const MAX_RESPONSE_CHARS: usize = 4_000;

/// Incoming request.
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

/// Changes to a request.
#[derive(Default)]
pub(crate) struct RequestEdit {
    /// Body to send instead of the client's.
    pub(crate) body: Option<Bytes>,
    /// Path and query to send, if they differ from the received ones: some dialects have the model there.
    pub(crate) target: Option<String>,
    /// New guidance at the tail of the messages.
    pub(crate) injection: Option<Injection>,
    /// The request contains new guidance, in any placement.
    pub(crate) is_steered: bool,
}

/// Request that was inspected and forwarded.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one request")]
pub(crate) struct Exchange {
    /// Body to send instead of the client's.
    pub(crate) body: Option<Bytes>,
    /// Path and query to send, if they differ from the received ones.
    target: Option<String>,
    /// Name of the caller, for budgets.
    key: Arc<str>,
    /// Model of the client's request.
    asked: String,
    /// Model the request is sent to.
    model: String,
    upstream: String,
    /// Step with its guidance, which counts as shown once the provider accepts the request.
    decided: Decided,
    /// The request is not part of the conversation: it costs, and has no step.
    is_auxiliary: bool,
    injection: Option<Injection>,
    is_steered: bool,
    is_continued: bool,
    /// The provider stores the response, and the next request may refer to it.
    is_stored_by_provider: bool,
    started: Instant,
}

impl Exchange {
    /// Creates the exchange of a model call.
    pub(crate) fn step(
        incoming: &Incoming<'_>,
        decided: Decided,
        edit: RequestEdit,
        model: String,
        is_continued: bool,
    ) -> Self {
        Self {
            body: edit.body,
            target: edit.target,
            key: Arc::clone(&incoming.caller.name),
            asked: decided.row.model.clone(),
            model,
            upstream: incoming.upstream.to_owned(),
            decided,
            is_auxiliary: false,
            injection: edit.injection,
            is_steered: edit.is_steered,
            is_continued,
            is_stored_by_provider: false,
            started: Instant::now(),
        }
    }

    /// Returns the address to send the request to, if it differs from the received one.
    pub(crate) fn uri(&self, received: &Uri) -> Option<Uri> {
        let mut parts = received.clone().into_parts();
        parts.path_and_query = Some(self.target.as_ref()?.parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// Sets whether the provider stores the response.
    pub(crate) fn stored_by_provider(self, is_stored_by_provider: bool) -> Self {
        Self { is_stored_by_provider, ..self }
    }

    /// Creates the exchange of an auxiliary request of a run.
    pub(crate) fn auxiliary(incoming: &Incoming<'_>, run: &RunKey, model: &str) -> Self {
        let row = StepRow {
            run: run.clone(),
            at_ms: now_ms(),
            model: model.to_owned(),
            ..StepRow::default()
        };
        let decided = Decided { row: Arc::new(row), ..Decided::default() };
        let step = Self::step(incoming, decided, RequestEdit::default(), model.to_owned(), false);
        Self { is_auxiliary: true, ..step }
    }

    /// Name of the decision in the request's tracing span.
    pub(crate) fn decision(&self) -> &'static str {
        match (self.is_auxiliary, self.is_steered) {
            (true, _) => "auxiliary",
            (false, true) => "steered",
            (false, false) => "observed",
        }
    }

    pub(crate) fn run_id(&self) -> &str {
        &self.decided.row.run.run_id
    }

    /// The provider rejected the edited request and accepted the original.
    pub(crate) async fn refused(&mut self, gateway: &Arc<Gateway>) {
        if self.model != self.asked {
            // The changed model is the more likely reason, so the channel stays in use.
            if let Ok(conversation) = gateway.conversations.of(&self.decided.row.run).await {
                conversation.lock().model_router.record_refusal();
            }
            self.model.clone_from(&self.asked);
        } else if let Some(injection) = &self.injection {
            gateway.channels.refuse(&self.upstream, &self.model, injection.channel);
        }
        self.undo_guidance(gateway).await;
    }

    /// Discards the guidance of this call: it did not reach the model.
    pub(crate) async fn undo_guidance(&mut self, gateway: &Arc<Gateway>) {
        if self.is_auxiliary {
            return;
        }
        self.injection = None;
        self.is_steered = false;
        let messages = std::mem::take(&mut self.decided.messages);
        gateway.runtime.runs.discard_plan(&mut self.decided.row, messages).await;
        self.keep_row(gateway).await;
    }

    /// The provider accepted the request: its injection is repeated in later requests. Runs before the first byte of the
    /// response reaches the client, so that the next request of the client finds the injection.
    pub(crate) async fn accepted(&mut self, gateway: &Arc<Gateway>) {
        if self.is_steered {
            gateway.runtime.runs.guidance_delivered(&self.decided);
        }
        let is_routing = !gateway.config.routing.is_empty();
        if self.is_auxiliary || (self.injection.is_none() && !is_routing) {
            return;
        }
        let run = &self.decided.row.run;
        let Ok(conversation) = gateway.conversations.of(run).await else { return };
        {
            let mut conversation = conversation.lock();
            conversation.injections.extend(self.injection.clone());
            conversation.model_router.record_served(&self.asked, &self.model);
        }
        gateway.save(run, &conversation).await;
    }

    /// Records the response, complete or until the client disconnected.
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
        if self.is_auxiliary {
            self.note_auxiliary(&gateway, spent).await;
            return;
        }
        gateway.runtime.runs.charge(usd);
        let row = Arc::make_mut(&mut self.decided.row);
        add(&mut row.tokens, &tokens);
        row.cost_usd += usd;
        row.model = model;
        self.note_answer(&answer, is_whole);
        self.index_response(&gateway, &answer).await;
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
        let text: String = answer.thought.chars().take(MAX_RESPONSE_CHARS).collect();
        let calls: Vec<Value> =
            answer.calls.iter().map(|call| Value::from(call.tool.as_str())).collect();
        let latency_ms = self.started.elapsed().as_secs_f64() * 1e3;
        let metadata = &mut Arc::make_mut(&mut self.decided.row).metadata;
        metadata.insert("answer".to_owned(), Value::from(text));
        metadata.insert("tool_calls".to_owned(), Value::from(calls));
        metadata.insert("latency_ms".to_owned(), Value::from(latency_ms));
        metadata.remove("is_cut_off");
        if !is_whole || !answer.is_complete {
            metadata.insert("is_cut_off".to_owned(), Value::from(true));
        }
    }

    /// Indexes the response, so that the next request of an anonymous run or of a provider-stored history finds its run.
    async fn index_response(&self, gateway: &Arc<Gateway>, answer: &Response) {
        let (run, conversations) = (&self.decided.row.run, &gateway.conversations);
        let is_anonymous = run.run_id.starts_with(ANONYMOUS_PREFIX);
        if !self.is_stored_by_provider && !is_anonymous {
            return;
        }
        let Ok(conversation) = conversations.of(run).await else { return };
        let is_saved = {
            let mut conversation = conversation.lock();
            let is_first = conversation.next_index <= 1;
            if is_anonymous
                && let Some(mark) = conversations.note_answer(run, &self.asked, answer)
                && is_first
            {
                conversation.mark = mark; // later marks are read from the next request
            }
            if self.is_stored_by_provider {
                conversation.answered(answer);
                if !answer.id.is_empty() {
                    let before = answer_head(&conversation.answer);
                    conversations.note_head(run, &before, &answer_head(&answer.id));
                    conversation.answer.clone_from(&answer.id);
                }
            }
            // A history contains several responses and is found by any of the last ones, except after the first.
            self.is_stored_by_provider || is_first
        };
        if is_saved {
            gateway.save(run, &conversation).await;
        }
    }

    /// Stores the row, also for a retry of the call.
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

    async fn note_auxiliary(&self, gateway: &Arc<Gateway>, spent: Spend) {
        let run = &self.decided.row.run;
        let Ok(conversation) = gateway.conversations.of(run).await else { return };
        let is_begun = {
            let mut conversation = conversation.lock();
            conversation.auxiliary_spend += spent;
            conversation.next_index > 0
        };
        // An auxiliary request alone does not create a run.
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
            conversation.model_router.record_usage(tokens, usd, now_ms());
            let request = Request { is_changed: self.is_steered, is_continued: self.is_continued };
            (conversation.cache_guard.note(usage, request), conversation.cache_guard.read_share())
        };
        if cause == Some(Cause::Gateway) {
            tracing::warn!(
                run = run.run_id,
                share,
                "prompt cache missed after a change by the gateway; steering of this run stops"
            );
            gateway.runtime.metrics.cache_guards_tripped.inc();
        }
        // Without a miss, the sums are stored with the next request.
        if cause.is_some() {
            gateway.save(run, &conversation).await;
        }
    }
}

/// Returns `true` for an answer after which the agent does nothing.
fn is_final(answer: &Response) -> bool {
    answer.is_complete && answer.calls.is_empty() && !answer.thought.trim().is_empty()
}

/// Adds the usage of a call, or of its retry, to the row.
fn add(sum: &mut Tokens, more: &Tokens) {
    sum.total = sum.total.saturating_add(more.total);
    sum.input = sum.input.saturating_add(more.input);
    sum.output = sum.output.saturating_add(more.output);
    sum.cache_read = sum.cache_read.saturating_add(more.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(more.cache_write);
}
