//! Inspection of a request: its run, its new steps, the decision, and the edited body. If anything fails or the timeout
//! expires, the request is forwarded unmodified.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use rb_engine::guidance::Fragment;
use rb_engine::policy::Placement;
use rb_engine::run::Stop;
use rb_engine::run::record::FIRST_CALL;
use rb_store::{RunKey, StepRow};
use rb_wire::body_edits::BodyEdits;
use rb_wire::conversation_hash::Continuity;
use rb_wire::inject::{self, Injection};
use rb_wire::model::{RunInput, RunStep};
use rb_wire::request::ParsedRequest;
use rb_wire::steps::PendingTurn;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::budget::BudgetStatus;
use crate::conversation::state::{Conversation, RequestKind};
use crate::conversation::store::{Conversations, head, newest_mark};
use crate::exchange::{Exchange, Incoming, RequestEdit};
use crate::mode::Mode;
use crate::{ANONYMOUS_PREFIX, Gateway, stored};
use rb_runtime::clock::now_ms;
use rb_runtime::runs::{
    CallContext, Decided, Delivery, Durability, MAX_ATTEMPTS, RunError, RunSession,
};

/// Larger requests are inspected in a separate task, so that a long parse cannot exceed the timeout.
const MAX_INLINE_BYTES: usize = 256 << 10;
/// Maximum length of a text of a step.
const MAX_TEXT_CHARS: usize = 64_000;

/// Result of the inspection.
pub(crate) enum Verdict {
    /// The request is forwarded unmodified, and its response is not parsed.
    Passthrough,
    /// The request is not sent: a budget is exhausted.
    Rejected { status: u16, message: String },
    /// The request is forwarded, possibly edited, and its response is parsed.
    Inspected(Box<Exchange>),
}

impl Verdict {
    /// Name of the decision in the request's tracing span.
    fn name(&self) -> &'static str {
        match self {
            Self::Passthrough => "unreadable",
            Self::Rejected { .. } => "refused",
            Self::Inspected(exchange) => exchange.decision(),
        }
    }
}

/// Inspects a request. A failure is counted, and the request passes through.
pub(crate) async fn inspect(gateway: &Arc<Gateway>, incoming: Incoming<'_>) -> Verdict {
    let span = Span::current();
    span.record("dialect", incoming.dialect.id());
    if incoming.mode == Mode::Off {
        span.record("decision", "off");
        return Verdict::Passthrough;
    }
    let inspected = if incoming.body.len() > MAX_INLINE_BYTES {
        inspect_spawned(gateway, incoming).await
    } else {
        AssertUnwindSafe(inspect_inline(gateway, incoming)).catch_unwind().await.ok()
    };
    let decision = match &inspected {
        Some(Ok(verdict)) => verdict.name(),
        Some(Err(_)) | None => "failed_open",
    };
    span.record("decision", decision);
    match inspected {
        Some(Ok(verdict)) => {
            if let Verdict::Inspected(exchange) = &verdict {
                span.record("run_id", exchange.run_id());
            }
            verdict
        }
        Some(Err(error)) => {
            tracing::debug!(%error, "request forwarded without inspection");
            gateway.runtime.metrics.failed_open.inc();
            Verdict::Passthrough
        }
        None => {
            gateway.runtime.metrics.failed_open.inc();
            Verdict::Passthrough
        }
    }
}

/// Inspects a long request in a separate task. After the timeout the request goes out unmodified; its steps are known
/// when the next one arrives. `None` after a panic.
async fn inspect_spawned(
    gateway: &Arc<Gateway>,
    incoming: Incoming<'_>,
) -> Option<Result<Verdict, RunError>> {
    let (caller, upstream) = (incoming.caller.clone(), incoming.upstream.to_owned());
    let target = incoming.target.to_owned();
    let (headers, body) = (incoming.headers.clone(), incoming.body.clone());
    let (dialect, mode) = (incoming.dialect, incoming.mode);
    let shared = Arc::clone(gateway);
    let inspection = async move {
        let (upstream, target) = (upstream.as_str(), target.as_str());
        let (caller, headers, body) = (&caller, &headers, &body);
        inspect_inline(&shared, Incoming { caller, upstream, dialect, target, headers, body, mode })
            .await
    };
    let mut inspection = tokio::spawn(inspection.in_current_span());
    if let Ok(inspected) =
        tokio::time::timeout(gateway.config.decision_timeout, &mut inspection).await
    {
        return inspected.ok();
    }
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        if let Ok(Ok(Verdict::Inspected(mut exchange))) = inspection.await {
            exchange.undo_guidance(&gateway).await;
        }
    });
    Some(Err(RunError::TimedOut))
}

/// Inspects a request, again after each version conflict.
async fn inspect_inline(
    gateway: &Arc<Gateway>,
    incoming: Incoming<'_>,
) -> Result<Verdict, RunError> {
    let Ok(chat) = ParsedRequest::parse(incoming.dialect, incoming.target, incoming.body) else {
        return Ok(Verdict::Passthrough); // the provider reports what is wrong with it
    };
    let deadline = Instant::now() + gateway.config.decision_timeout;
    for conflicts in 0..MAX_ATTEMPTS {
        match decide(gateway, &incoming, &chat, deadline).await {
            Err(RunError::Conflict { .. }) => {}
            result => {
                Span::current().record("conflicts", conflicts);
                return result;
            }
        }
    }
    Span::current().record("conflicts", MAX_ATTEMPTS);
    Err(RunError::Conflict { attempts: MAX_ATTEMPTS })
}

async fn within<T>(deadline: Instant, work: impl Future<Output = T>) -> Result<T, RunError> {
    tokio::time::timeout_at(deadline, work).await.map_err(|_| RunError::TimedOut)
}

async fn decide(
    gateway: &Arc<Gateway>,
    incoming: &Incoming<'_>,
    chat: &ParsedRequest<'_>,
    deadline: Instant,
) -> Result<Verdict, RunError> {
    let (org, project) = incoming.caller.org_and_project(None, None);
    let mut identity = within(deadline, gateway.run_of(&org, incoming, chat)).await?;
    let (mut session, mut conversation) = within(deadline, open(gateway, &identity.run)).await??;
    if chat.is_server_side_history() || chat.has_item_references() {
        let response = gateway.conversations.wait_for_response(&identity.run, &conversation);
        within(deadline, response).await?;
    }
    let mut kind = conversation.lock().kind_of(chat, identity.is_session_scoped);
    if kind == RequestKind::Subagent {
        identity = identity.subagent(chat);
        (session, conversation) = within(deadline, open(gateway, &identity.run)).await??;
        kind = conversation.lock().kind_of(chat, identity.is_session_scoped);
    }
    let run = &identity.run;
    let incoming = &Incoming { mode: gateway.experiment_mode(incoming.mode, run), ..*incoming };
    let auxiliary_spend = conversation.lock().auxiliary_spend;
    let status = gateway.budgets.standing(&incoming.caller.name, run, auxiliary_spend);
    let budget_warning = match within(deadline, status).await? {
        BudgetStatus::HardLimit(message) => return Ok(Verdict::Rejected { status: 429, message }),
        BudgetStatus::SoftLimit(text) => Some(text),
        BudgetStatus::Ok => None,
    };
    let continuity = match kind {
        RequestKind::Main(continuity) => continuity,
        RequestKind::ReplacesAuxiliary => Continuity::Compacted,
        RequestKind::Auxiliary | RequestKind::Subagent => {
            let exchange = Exchange::auxiliary(incoming, run, &chat.model());
            return Ok(Verdict::Inspected(Box::new(exchange)));
        }
    };
    let model = chat.model();
    let may_steer = incoming.mode == Mode::Steer && !conversation.lock().cache_guard.tripped;
    let call = CallContext {
        model: &model,
        deadline: Some(deadline),
        durability: Durability::Queued,
        delivery: Delivery::Confirmed,
        budget_warning,
        may_steer,
        description: &|| gateway.start_metadata(incoming, &identity, &project, chat),
        is_described_again: kind == RequestKind::ReplacesAuxiliary,
        companion: &|| Some(stored(run, &conversation.lock())),
    };
    let inspection = Inspection { gateway, incoming, chat, conversation: &conversation, run };
    let decided = inspection.advance(&mut session, &call, continuity).await?;
    if let Some(Stop::TokenBudget { used, limit }) = session.plan().and_then(|plan| plan.stop) {
        gateway.runtime.messages.put_back(decided.messages).await;
        let message = format!("the token budget of this run is used up: {used} of {limit}");
        return Ok(Verdict::Rejected { status: 429, message });
    }
    Ok(Verdict::Inspected(Box::new(inspection.exchange(&session, may_steer, continuity, decided))))
}

/// Locks a run and reads its conversation. On a shared store the state is read before the conversation, so that the
/// version check of the state covers the conversation.
async fn open<'a>(
    gateway: &'a Arc<Gateway>,
    run: &RunKey,
) -> Result<(RunSession<'a>, Arc<Mutex<Conversation>>), RunError> {
    let mut session = gateway.runtime.runs.lock(run).await;
    if gateway.runtime.store.is_shared() && !session.is_loaded() {
        session.load().await?;
        gateway.conversations.forget(run);
    }
    let conversation = gateway.conversations.of(run).await?;
    Ok((session, conversation))
}

/// Drops a conversation from memory unless the change to it completes. The store has its state before the change.
struct Rollback<'a> {
    conversations: &'a Conversations,
    run: &'a RunKey,
    is_complete: bool,
}

impl Drop for Rollback<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.conversations.forget(self.run);
        }
    }
}

/// One request with its conversation.
struct Inspection<'a> {
    gateway: &'a Arc<Gateway>,
    incoming: &'a Incoming<'a>,
    chat: &'a ParsedRequest<'a>,
    conversation: &'a Mutex<Conversation>,
    run: &'a RunKey,
}

impl Inspection<'_> {
    /// Adds the new steps to the run and decides on the call. A request without new steps repeats the newest call, whose
    /// plan stays as it is.
    async fn advance(
        &self,
        session: &mut RunSession<'_>,
        call: &CallContext<'_>,
        continuity: Continuity,
    ) -> Result<Decided, RunError> {
        let conversations = &self.gateway.conversations;
        let mut rollback = Rollback { conversations, run: self.run, is_complete: false };
        let mut rows = self.new_rows(continuity);
        let decided = if let Some(newest) = rows.last_mut() {
            call.model.clone_into(&mut newest.model);
            session.decide(call, rows).await?
        } else {
            let mut row = self.latest(call).await;
            call.model.clone_into(&mut row.model);
            session.repeat(call, row).await?
        };
        self.conversation.lock().latest = Some(Arc::clone(&decided.row));
        rollback.is_complete = true;
        Ok(decided)
    }

    /// Row of the newest step, from memory or the store.
    async fn latest(&self, call: &CallContext<'_>) -> StepRow {
        let (latest, next) = {
            let conversation = self.conversation.lock();
            (conversation.latest.clone(), conversation.next_index)
        };
        if let Some(latest) = latest {
            return Arc::unwrap_or_clone(latest);
        }
        let newest = next.saturating_sub(1);
        let stored = call.within(self.gateway.runtime.store.steps(self.run, newest, 1)).await;
        let row = stored.ok().and_then(|rows| rows.ok()?.into_iter().next());
        row.unwrap_or_else(|| empty_row(self.run, newest))
    }

    /// Writes the guidance and the model of the plan into the request.
    fn exchange(
        &self,
        session: &RunSession<'_>,
        may_steer: bool,
        continuity: Continuity,
        decided: Decided,
    ) -> Exchange {
        let (gateway, incoming) = (self.gateway, self.incoming);
        let conversation = self.conversation.lock();
        let model = decided.row.model.as_str();
        let plan = session.plan().filter(|_| may_steer);
        let text = plan.and_then(|plan| plan.fragment.as_ref()).map(Fragment::as_str);
        let served = match incoming.mode {
            Mode::Steer if !gateway.config.routing.is_empty() => {
                let routed = plan.and_then(|plan| plan.route.as_deref());
                let max = gateway.config.routing_switches_max;
                let models = &conversation.model_router;
                models.choose(model, routed, max, &gateway.runtime.prices, now_ms()).to_owned()
            }
            Mode::Steer | Mode::Observe | Mode::Off => model.to_owned(),
        };
        let route = (served != model).then_some(served.as_str());
        let edit = edit(incoming, gateway, self.chat, &conversation, text, route);
        let is_continued = matches!(continuity, Continuity::Continues { .. } | Continuity::Retry);
        Exchange::step(incoming, decided, edit, served, is_continued)
            .stored_by_provider(self.chat.provider_stores_response())
    }

    /// Creates a row for each new step; before the first step, one for the first call.
    fn new_rows(&self, continuity: Continuity) -> Vec<StepRow> {
        let mut conversation = self.conversation.lock();
        let mut carry = PendingTurn::default();
        let new = conversation.take(self.chat, continuity, &mut carry);
        // A history stored by the provider is found by its response ids.
        if !self.chat.is_server_side_history() {
            let head = head(conversation.newest(), &self.chat.model());
            self.gateway.conversations.note_head(self.run, &conversation.head, &head);
            conversation.head = head;
            // Other nodes, and this one after a restart, find a rewritten history by its newest response.
            let is_indexed = self.gateway.runtime.store.is_shared() || conversation.is_rewritten();
            if is_indexed
                && self.run.run_id.starts_with(ANONYMOUS_PREFIX)
                && let Some(mark) = newest_mark(self.chat)
            {
                conversation.mark = mark;
            }
        }
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

/// Applies earlier injections, new guidance and the routed model to a request.
fn edit(
    incoming: &Incoming<'_>,
    gateway: &Gateway,
    chat: &ParsedRequest<'_>,
    conversation: &Conversation,
    text: Option<&str>,
    route: Option<&str>,
) -> RequestEdit {
    let model = route.map_or_else(|| chat.model(), Into::into);
    let mut edits = BodyEdits::new(chat.body);
    let (mut injection, mut is_steered): (Option<Injection>, bool) = (None, false);
    match gateway.config.placement {
        Placement::Tail => {
            let channels = gateway.channels.of(incoming.upstream, &model, chat.dialect);
            let earlier = match incoming.mode {
                Mode::Steer => conversation.injections.as_slice(),
                Mode::Observe | Mode::Off => &[],
            };
            let tail = inject::inject_tail(chat, earlier, text, &channels);
            is_steered = tail.injection.is_some();
            injection = tail.injection;
            edits.extend(tail.edits);
        }
        Placement::System => {
            if let Some(text) = text {
                edits.extend(inject::inject_system(chat, text));
                is_steered = true;
            }
        }
    }
    let mut target = incoming.target.to_owned();
    if let Some(route) = route {
        edits.extend(inject::set_model(chat, route, &mut target));
    }
    let target = (target != incoming.target).then_some(target);
    let is_changed = target.is_some() || !edits.is_empty();
    let body = is_changed.then(|| Bytes::from(edits.apply()));
    RequestEdit { body, target, injection, is_steered }
}

fn empty_row(run: &RunKey, step_index: u32) -> StepRow {
    StepRow { run: run.clone(), step_index, at_ms: now_ms(), ..StepRow::default() }
}

fn row_of(run: &RunKey, step: &RunStep<'_>, step_index: u32) -> StepRow {
    let cut = |text: &str| {
        // Counts characters only if the text has more bytes than the maximum.
        let is_short = text.len() <= MAX_TEXT_CHARS;
        let end = if is_short { None } else { text.char_indices().nth(MAX_TEXT_CHARS) };
        end.map_or(text, |(end, _)| &text[..end]).to_owned()
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
