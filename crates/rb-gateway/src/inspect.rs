//! One request of a conversation, watched: which run it belongs to, what is new in it, what is due, and the bytes that
//! go out. Whatever fails here, the request goes out as it came.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use rb_engine::guidance::{Query, Retrieved, Tier};
use rb_engine::run::record::FIRST_CALL;
use rb_engine::run::{PreCall, Stop};
use rb_store::{Change, RunKey, RunStart, StepRow, StoreError};
use rb_wire::body_edits::BodyEdits;
use rb_wire::conversation_hash::Continuity;
use rb_wire::inject::{self, Injection};
use rb_wire::model::{RunInput, RunStep};
use rb_wire::request::ParsedRequest;
use rb_wire::steps::PendingTurn;
use tokio::time::Instant;

use crate::budget::Standing;
use crate::conversation::state::{Conversation, Place};
use crate::conversation::store::{head, newest_mark};
use crate::exchange::{Change as Made, Incoming, Watched};
use crate::mode::Mode;
use crate::{Gateway, NAMELESS, Placement, remembered};
use rb_runtime::clock::now_ms;
use rb_runtime::operator_messages::Claimed;
use rb_runtime::retrieval::Match;
use rb_runtime::runs::{LiveRun, RunGuard};
use rb_runtime::telemetry::{StepAssessed, StepChanged};

/// A longer request may hold a history that takes long to read; it is read beside the request, which waits no longer.
const READ_BESIDE_BYTES: usize = 256 << 10;
/// Of each text of a step, so many characters are read and kept.
const TEXT_CHARS_MAX: usize = 64_000;

/// What becomes of a request.
pub(crate) enum Verdict {
    /// It goes out as it came, and nobody looks at the answer.
    Unwatched,
    /// It is not sent: a budget is used up.
    Refused { status: u16, why: String },
    /// It goes out, perhaps changed, and the answer is looked at.
    Watched(Box<Watched>),
}

/// Watches a request. What takes too long is left out, and a fault of ours is counted and goes no further.
pub(crate) async fn watch(gateway: &Arc<Gateway>, incoming: Incoming<'_>) -> Verdict {
    if incoming.mode == Mode::Off {
        return Verdict::Unwatched;
    }
    let looked = if incoming.body.len() > READ_BESIDE_BYTES {
        look_beside(gateway, incoming).await
    } else {
        AssertUnwindSafe(look(gateway, incoming)).catch_unwind().await.ok().flatten()
    };
    looked.unwrap_or_else(|| {
        gateway.runtime.metrics.failed_open.inc();
        Verdict::Unwatched
    })
}

/// Looks at a long request in a task of its own. If that takes too long, the request goes out as it came; the steps in it
/// are known for the next one.
async fn look_beside(gateway: &Arc<Gateway>, incoming: Incoming<'_>) -> Option<Verdict> {
    let (caller, upstream) = (incoming.caller.clone(), incoming.upstream.to_owned());
    let (headers, body) = (incoming.headers.clone(), incoming.body.clone());
    let (dialect, mode) = (incoming.dialect, incoming.mode);
    let shared = Arc::clone(gateway);
    let mut looking = tokio::spawn(async move {
        let upstream = upstream.as_str();
        let (caller, headers, body) = (&caller, &headers, &body);
        look(&shared, Incoming { caller, upstream, dialect, headers, body, mode }).await
    });
    if let Ok(looked) = tokio::time::timeout(gateway.config.decided_within, &mut looking).await {
        return looked.ok().flatten();
    }
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        if let Ok(Some(Verdict::Watched(mut watched))) = looking.await {
            watched.untold(&gateway).await;
        }
    });
    None
}

/// So often a request is decided anew because another node was faster with one of the same run.
const ATTEMPTS: u32 = 4;

/// `None` if something failed or took too long.
async fn look(gateway: &Arc<Gateway>, incoming: Incoming<'_>) -> Option<Verdict> {
    let Ok(chat) = ParsedRequest::parse(incoming.dialect, incoming.body) else {
        return Some(Verdict::Unwatched); // the provider will say what is wrong with it
    };
    let deadline = Deadline::new(gateway);
    for _ in 0..ATTEMPTS {
        match decide(gateway, &incoming, &chat, deadline).await? {
            Decided::So(verdict) => return Some(verdict),
            Decided::Overtaken => gateway.runtime.metrics.version_conflicts.inc(),
        };
    }
    None
}

/// What was decided about a request.
enum Decided {
    So(Verdict),
    /// Another node has changed the run meanwhile: what was decided here does not stand, and nothing of it is kept.
    Overtaken,
}

/// All questions about one request together have so long.
#[derive(Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn new(gateway: &Gateway) -> Self {
        Self(Instant::now() + gateway.config.decided_within)
    }

    /// Gives up on what takes too long.
    async fn of<T>(self, what: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0, what).await.ok()
    }
}

async fn decide(
    gateway: &Arc<Gateway>,
    incoming: &Incoming<'_>,
    chat: &ParsedRequest<'_>,
    deadline: Deadline,
) -> Option<Decided> {
    let (org, project) = incoming.caller.org_and_project(None, None);
    let mut named = deadline.of(gateway.run_of(&org, incoming, chat)).await?;
    let (mut turn, mut conversation) = deadline.of(taken_up(gateway, &named.run)).await??;
    if chat.is_server_side_history() || chat.has_item_references() {
        let told = gateway.conversations.told_answer(&named.run, &conversation);
        deadline.of(told).await?;
    }
    let mut place = conversation.lock().place(chat, named.is_of_harness);
    if place == Place::Other {
        named = named.child(chat);
        (turn, conversation) = deadline.of(taken_up(gateway, &named.run)).await??;
        place = conversation.lock().place(chat, named.is_of_harness);
    }
    let run = &named.run;
    let incoming = &Incoming { mode: gateway.mode_in_arm(incoming.mode, run), ..*incoming };
    let asides = conversation.lock().asides;
    let standing = gateway.budgets.standing(&incoming.caller.name, run, asides);
    let near = match deadline.of(standing).await? {
        Standing::Over(why) => return Some(Decided::So(Verdict::Refused { status: 429, why })),
        Standing::Near(text) => Some(text),
        Standing::Within => None,
    };
    let continuity = match place {
        Place::Within(continuity) => continuity,
        Place::Instead => Continuity::Compacted,
        Place::Aside | Place::Other => {
            let watched = Watched::aside(incoming, run, &chat.model());
            return Some(Decided::So(Verdict::Watched(Box::new(watched))));
        }
    };
    let start = || gateway.start_of(incoming, &named, &project, chat);
    let begun = deadline.of(ensure_live(gateway, run, start, &mut turn)).await??;
    let says_more = begun.or_else(|| (place == Place::Instead).then(start));
    let conversation = conversation.as_ref();
    let here = Here { gateway, incoming, chat, conversation, run, near, says_more, deadline };
    let latest = here.latest().await;
    let walk = here.step_forward(turn.as_mut()?, continuity, latest);
    let walked = AssertUnwindSafe(walk).catch_unwind().await.ok().flatten();
    if !matches!(walked, Some(Decided::So(_))) {
        // Whatever was half changed, or changed in vain, is read from the store again.
        *turn = None;
        gateway.conversations.forget(run);
    }
    walked
}

/// Waits for the turn of a run and takes up its conversation. Where other nodes may have gone on with the run, its state
/// is read before the conversation: then what is guarded by the version of the state is never older than that.
async fn taken_up(
    gateway: &Arc<Gateway>,
    run: &RunKey,
) -> Option<(RunGuard, Arc<Mutex<Conversation>>)> {
    let mut turn = gateway.runtime.live_runs.lock(run).await;
    if gateway.runtime.store.is_shared() && turn.is_none() {
        *turn = gateway.runtime.run_loader.load_known(run).await.ok()?;
        gateway.conversations.forget(run);
    }
    let conversation = gateway.conversations.of(run).await?;
    Some((turn, conversation))
}

/// Everything around one request.
struct Here<'a> {
    gateway: &'a Arc<Gateway>,
    incoming: &'a Incoming<'a>,
    chat: &'a ParsedRequest<'a>,
    conversation: &'a Mutex<Conversation>,
    run: &'a RunKey,
    /// What is to be said about a budget.
    near: Option<String>,
    /// What the run says about itself with this request.
    says_more: Option<RunStart>,
    deadline: Deadline,
}

impl Here<'_> {
    /// The row of the newest step, which a call that is made again adds to. After a restart the store has it.
    async fn latest(&self) -> Option<Arc<StepRow>> {
        let (latest, next) = {
            let conversation = self.conversation.lock();
            (conversation.latest.clone(), conversation.next_index)
        };
        if latest.is_some() {
            return latest;
        }
        let newest = next.checked_sub(1)?;
        let rows =
            self.deadline.of(self.gateway.runtime.store.steps(self.run, newest, 1)).await?.ok()?;
        rows.into_iter().next().map(Arc::new)
    }

    /// Asks the engine about what is new, and writes what is due into the request. `None` where it could not be kept in
    /// time.
    async fn step_forward(
        &self,
        live: &mut LiveRun,
        continuity: Continuity,
        latest: Option<Arc<StepRow>>,
    ) -> Option<Decided> {
        let (gateway, run) = (self.gateway, self.run);
        let model = self.chat.model().into_owned();
        let is_open =
            self.incoming.mode == Mode::Steer && !self.conversation.lock().ledger.is_blown;
        let mut rows = self.new_rows(continuity);
        for row in &mut rows {
            row.project.clone_from(&live.project);
        }
        let newest = rows.pop();
        let mut words = Claimed::default();
        let is_retry = newest.is_none();
        let mut matches = Vec::new();
        let mut seen = Vec::with_capacity(rows.len() + 1);
        for mut earlier in rows {
            live.assess(&mut earlier);
            seen.push(Arc::new(earlier));
        }
        let mut row = match newest {
            Some(mut row) => {
                let mut ask = live.before_call(&mut row);
                if let Some(text) = self.near.clone() {
                    ask = ask.with_wrap_up(text);
                }
                let found;
                (found, matches) = self.found(&ask, &model).await;
                if is_open {
                    words = gateway.runtime.messages.claim(run).await;
                }
                live.plan(ask, &found, &words.texts(), &model, &mut row);
                row
            }
            // The same call again: what was told for it still stands.
            None => latest.map_or_else(
                || empty_row(run, self.conversation.lock().next_index.saturating_sub(1)),
                Arc::unwrap_or_clone,
            ),
        };
        row.model.clone_from(&model);
        let row = Arc::new(row);
        seen.push(Arc::clone(&row));
        self.conversation.lock().latest = Some(Arc::clone(&row));
        let is_kept = self.keep(live, seen, is_retry).await;
        if is_kept != Some(true) {
            gateway.runtime.messages.put_back(words).await;
            return is_kept.map(|_| Decided::Overtaken);
        }
        if let Some(Stop::TokenBudget { used, limit }) =
            live.current_plan().and_then(|plan| plan.stop)
        {
            gateway.runtime.messages.put_back(words).await;
            let why = format!("the token budget of this run is used up: {used} of {limit}");
            return Some(Decided::So(Verdict::Refused { status: 429, why }));
        }
        let conversation = self.conversation.lock();
        let told = live.current_plan().filter(|_| is_open);
        let text =
            told.and_then(|plan| plan.fragment.as_ref()).map(|text| text.as_str().to_owned());
        let routed = told.and_then(|plan| plan.route.as_deref());
        let served = match self.incoming.mode {
            Mode::Steer if !gateway.config.routing.is_empty() => {
                let max = gateway.config.routing_switches_max;
                let switching = &conversation.switching;
                switching.choose(&model, routed, max, &gateway.runtime.prices, now_ms()).to_owned()
            }
            Mode::Steer | Mode::Observe | Mode::Off => model.clone(),
        };
        let route = (served != model).then_some(served.as_str());
        let made =
            changed(self.incoming, gateway, self.chat, &conversation, text.as_deref(), route);
        drop(conversation);
        let is_continued = matches!(continuity, Continuity::Continues { .. } | Continuity::Retry);
        let step = Watched::step(self.incoming, row, made, served, is_continued)
            .kept(self.chat.provider_stores_response());
        let step = step.with_words(words).with_patterns(matches);
        Some(Decided::So(Verdict::Watched(Box::new(step))))
    }

    /// Keeps what was seen and decided. Alone, this node writes it down beside the request; among others, before the
    /// request goes out, and only if nobody else has changed the run: then this is `false`.
    /// The last row of a retry was stored and counted before.
    async fn keep(
        &self,
        live: &mut LiveRun,
        seen: Vec<Arc<StepRow>>,
        is_retry: bool,
    ) -> Option<bool> {
        let gateway = self.gateway;
        let start = self.says_more.clone().map(|start| Change::StartRun(Box::new(start)));
        let rows = seen.iter().map(|row| Change::PutStep(Arc::clone(row)));
        let mut changes: Vec<Change> = start.into_iter().chain(rows).collect();
        let version = live.version + changes.len() as u64;
        changes.push(remembered(self.run, &self.conversation.lock()));
        if !gateway.runtime.store.is_shared() {
            for change in changes {
                gateway.recorder.put(change);
            }
        } else if !self.deadline.of(gateway.agreed(self.run, live.version, changes)).await?? {
            return Some(false);
        }
        live.version = version;
        live.is_known = true;
        let counted = seen.len() - usize::from(is_retry);
        for (at, row) in seen.iter().enumerate() {
            let project = &row.project;
            if at < counted {
                StepAssessed { row, project }
                    .emit(&gateway.runtime.metrics, &gateway.runtime.events);
            } else {
                StepChanged { row, project }.emit(&gateway.runtime.events);
            }
        }
        Some(true)
    }

    /// Looks up patterns for a call. Standing rules (E3) are looked up only if the configuration enables them.
    async fn found(&self, ask: &PreCall, model: &str) -> (Retrieved, Vec<Match>) {
        let has_rules = self.gateway.config.standing_rules;
        let wanted = |query: &&Query| has_rules || query.tier != Tier::E3;
        let queries: Vec<Query> = ask.queries.iter().filter(wanted).cloned().collect();
        let looking = self.gateway.runtime.guidance.look_up(&self.run.org, model, &queries);
        let answers = self.deadline.of(looking).await;
        answers.map(|answers| (answers.retrieved, answers.matches)).unwrap_or_default()
    }

    /// A row for each new step; before the first step, one for the first call.
    fn new_rows(&self, continuity: Continuity) -> Vec<StepRow> {
        let mut conversation = self.conversation.lock();
        let mut carry = PendingTurn::default();
        let new = conversation.take(self.chat, continuity, &mut carry);
        // What the provider keeps is found by its answers.
        if !self.chat.is_server_side_history() {
            let head = head(conversation.newest(), &self.chat.model());
            self.gateway.conversations.note_head(self.run, &conversation.head, &head);
            conversation.head = head;
            // Other nodes know nothing else of our answers; alone, we do until we are started again.
            let is_looked_for =
                self.gateway.runtime.store.is_shared() || conversation.is_rewritten();
            if is_looked_for
                && self.run.run_id.starts_with(NAMELESS)
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

/// The request with everything that belongs into it.
fn changed(
    incoming: &Incoming<'_>,
    gateway: &Gateway,
    chat: &ParsedRequest<'_>,
    conversation: &Conversation,
    text: Option<&str>,
    route: Option<&str>,
) -> Made {
    let model = route.map_or_else(|| chat.model(), Into::into);
    let mut splices = BodyEdits::new(chat.body);
    let (mut planted, mut is_steered): (Option<Injection>, bool) = (None, false);
    match gateway.config.placement {
        Placement::Tail => {
            let channels = gateway.channels.of(incoming.upstream, &model, chat.dialect);
            let earlier = match incoming.mode {
                Mode::Steer => conversation.planted.as_slice(),
                Mode::Observe | Mode::Off => &[],
            };
            let tail = inject::inject_tail(chat, earlier, text, &channels);
            is_steered = tail.injection.is_some();
            planted = tail.injection;
            splices.extend(tail.edits);
        }
        Placement::System => {
            if let Some(text) = text {
                splices.extend(inject::inject_system(chat, text));
                is_steered = true;
            }
        }
    }
    if let Some(route) = route {
        splices.extend(inject::set_model(chat, route));
    }
    let body = (!splices.is_empty()).then(|| Bytes::from(splices.apply()));
    Made { body, planted, is_steered }
}

/// Makes sure that the run's state is there. A run that nobody knew gives what it says about itself.
async fn ensure_live(
    gateway: &Arc<Gateway>,
    run: &RunKey,
    start: impl FnOnce() -> RunStart,
    turn: &mut RunGuard,
) -> Option<Option<RunStart>> {
    if turn.is_some() {
        return Some(None);
    }
    // Among nodes it was looked for already, and what another one begins meanwhile the guard will find.
    if !gateway.runtime.store.is_shared() {
        **turn = gateway.runtime.run_loader.load_known(run).await.ok()?;
        if turn.is_some() {
            return Some(None);
        }
    }
    let start = start();
    **turn = Some(gateway.runtime.run_loader.begin(&start).await.ok()?);
    Some(Some(start))
}

fn empty_row(run: &RunKey, step_index: u32) -> StepRow {
    StepRow { run: run.clone(), step_index, at_ms: now_ms(), ..StepRow::default() }
}

fn row_of(run: &RunKey, step: &RunStep<'_>, step_index: u32) -> StepRow {
    let cut = |text: &str| {
        // Nearly every text has fewer bytes than it may have characters, and need not be counted.
        let is_short = text.len() <= TEXT_CHARS_MAX;
        let end = if is_short { None } else { text.char_indices().nth(TEXT_CHARS_MAX) };
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

impl Gateway {
    /// Makes changes that were decided by a run's state, unless another node has changed the run meanwhile: then this is
    /// `false`. `None` where the store failed.
    pub(crate) async fn agreed(
        &self,
        run: &RunKey,
        version: u64,
        changes: Vec<Change>,
    ) -> Option<bool> {
        let mut guarded = vec![Change::ExpectVersion { run: run.clone(), version }];
        guarded.extend(changes);
        match self.runtime.store.apply(guarded).await {
            Ok(_) => Some(true),
            Err(StoreError::VersionConflict) => Some(false),
            Err(_) => None,
        }
    }

    /// Queues what became of a step for the store and tells whoever listens.
    pub(crate) fn amend_step(&self, row: Arc<StepRow>) {
        StepChanged { row: &row, project: &row.project }.emit(&self.runtime.events);
        self.recorder.put(Change::AmendStep(row));
    }
}
