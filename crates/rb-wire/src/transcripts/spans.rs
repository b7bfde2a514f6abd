//! Conversion of spans, as exported by tracing libraries and their servers, to runs.
//!
//! A span is a model call, a tool call, or an agent that contains both. Each agent is a run; a trace without agents
//! is one run. The spans of a run are read in the order of their start times. The first model call contains the
//! conversation so far. Later calls repeat it, so only new user messages and new results are taken from them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::DiagnosticKind;
use super::documents::ImportContext;
use super::lazy_json::Json;
use super::step_builder::{Answer, Call, Event, StepBuilder, Turn};
use crate::model::{RecordedUsage, Run, RunInput};

type Text<'a> = Cow<'a, str>;

/// Maximum number of parent spans to search for the agent of a span.
const CLIMB_MAX: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Kind {
    Agent,
    Model,
    Tool,
    #[default]
    Other,
}

/// Normalised span.
#[derive(Debug, Clone, Default)]
pub(super) struct Span<'a> {
    pub(super) trace: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) parent: Option<Text<'a>>,
    pub(super) name: Text<'a>,
    pub(super) kind: Kind,
    pub(super) start_ms: Option<u64>,
    pub(super) end_ms: Option<u64>,
    pub(super) is_error: bool,
    pub(super) session: Option<Text<'a>>,
    pub(super) agent: Option<Text<'a>>,
    pub(super) model: Option<Text<'a>>,
    pub(super) usage: RecordedUsage,
    pub(super) cost_usd: Option<f64>,
    /// Input messages of a model call.
    pub(super) told: Vec<Event<'a>>,
    /// Output messages of a model call.
    pub(super) said: Vec<Event<'a>>,
    /// Tool call id, input and output.
    pub(super) call_id: Option<Text<'a>>,
    pub(super) input: RunInput<'a>,
    pub(super) output: Text<'a>,
}

/// Converts the spans of a file to runs.
pub(super) fn runs<'a>(
    spans: Vec<Span<'a>>,
    about: Option<Json<'a>>,
    context: &mut ImportContext<'a>,
) {
    let count = spans.len();
    let mut traces: Vec<Vec<Span<'a>>> = Vec::new();
    let mut numbers: BTreeMap<Text<'a>, usize> = BTreeMap::new();
    for span in spans {
        let number = *numbers.entry(span.trace.clone()).or_insert_with(|| {
            traces.push(Vec::new());
            traces.len() - 1
        });
        traces[number].push(span);
    }
    let before = context.runs.len();
    for spans in traces {
        context.runs.extend(Trace::new(spans).runs());
    }
    if let Some(about) = about.filter(|_| count > 0 && context.runs.len() == before) {
        context.report(about, DiagnosticKind::NothingOfAnAgent { spans: count });
    }
}

/// Spans of one trace, ordered by start time.
struct Trace<'a> {
    spans: Vec<Span<'a>>,
    by_id: BTreeMap<Text<'a>, usize>,
}

/// State of one run during conversion.
#[derive(Default)]
struct Room<'a> {
    builder: StepBuilder<'a>,
    /// Number of user messages and the last of them.
    asked: usize,
    asked_last: Text<'a>,
    has_begun: bool,
    /// Usage of model calls without recorded output.
    silent: RecordedUsage,
    silent_cost: Option<f64>,
    session: Option<Text<'a>>,
    started_ms: Option<u64>,
    ended_ms: Option<u64>,
}

impl<'a> Trace<'a> {
    fn new(mut spans: Vec<Span<'a>>) -> Self {
        spans.sort_by_key(|span| (span.start_ms, span.kind));
        let by_id = spans.iter().enumerate().map(|(at, span)| (span.id.clone(), at)).collect();
        Self { spans, by_id }
    }

    fn parent(&self, at: usize) -> Option<usize> {
        let parent = self.spans.get(at)?.parent.as_ref()?;
        self.by_id.get(parent).copied().filter(|parent| *parent != at)
    }

    /// Returns the ancestor spans, innermost first.
    fn around(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parent(at), |at| self.parent(*at)).take(CLIMB_MAX)
    }

    fn is(&self, at: usize, kind: Kind) -> bool {
        self.spans.get(at).is_some_and(|span| span.kind == kind)
    }

    /// Returns the agent that a span belongs to.
    fn agent_of(&self, at: usize) -> Option<usize> {
        if self.is(at, Kind::Agent) {
            return Some(at);
        }
        self.around(at).find(|around| self.is(*around, Kind::Agent))
    }

    fn runs(mut self) -> Vec<Run<'a>> {
        let mut rooms: BTreeMap<Option<usize>, Room<'a>> = BTreeMap::new();
        let calls = (0..self.spans.len()).filter(|at| self.is(*at, Kind::Model));
        let mut callers: Vec<Option<usize>> = calls.map(|at| self.agent_of(at)).collect();
        callers.sort_unstable();
        callers.dedup();
        // With several agents, the input of one contains the output of the others.
        let is_alone = callers.len() <= 1;
        for at in 0..self.spans.len() {
            // Libraries on different levels record the same call as nested spans.
            let is_repeat = self.is(at, Kind::Model)
                && self.around(at).any(|around| self.is(around, Kind::Model));
            let room = rooms.entry(self.agent_of(at)).or_default();
            let Some(span) = self.spans.get_mut(at) else { continue };
            room.started_ms = room.started_ms.or(span.start_ms);
            room.ended_ms = room.ended_ms.max(span.end_ms);
            room.session = room.session.take().or(span.session.clone());
            match span.kind {
                Kind::Model if !is_repeat => room.model_call(span, is_alone),
                Kind::Tool => room.tool_call(span),
                Kind::Agent | Kind::Model | Kind::Other => {}
            }
        }
        for (agent, room) in &mut rooms {
            let agent = agent.and_then(|at| self.spans.get_mut(at));
            if let Some(agent) = agent.filter(|_| room.is_empty()) {
                // Only the agent span was recorded; it contains the whole conversation.
                room.model_call(agent, true);
            }
        }
        rooms.retain(|_, room| !room.is_empty());
        self.named(rooms)
    }

    fn named(&self, rooms: BTreeMap<Option<usize>, Room<'a>>) -> Vec<Run<'a>> {
        let known: BTreeSet<Option<usize>> = rooms.keys().copied().collect();
        let name = |agent: Option<usize>| {
            let trace = self.spans.first().map(|span| span.trace.clone()).unwrap_or_default();
            match agent.and_then(|at| self.spans.get(at)).filter(|_| known.first() != Some(&agent))
            {
                Some(span) => Cow::Owned(format!("{trace}/{}", span.id)),
                None => trace,
            }
        };
        let run = |(agent, room): (Option<usize>, Room<'a>)| {
            let span = agent.and_then(|at| self.spans.get(at));
            let mut outer = agent
                .into_iter()
                .flat_map(|at| self.around(at))
                .filter(|at| self.is(*at, Kind::Agent));
            let parent = outer.find(|at| known.contains(&Some(*at))).map(Some);
            let parent =
                parent.or_else(|| (agent.is_some() && known.contains(&None)).then_some(None));
            let mut run = room.builder.into_run(Run {
                run_id: Some(name(agent)).filter(|name| !name.is_empty()),
                session_id: room.session,
                parent_id: parent.map(name).filter(|name| !name.is_empty()),
                agent: span.and_then(|span| span.agent.clone().or(Some(span.name.clone()))),
                outcome: span.filter(|span| span.is_error).map(|_| "error".into()),
                started_ms: room.started_ms,
                ended_ms: room.ended_ms,
                ..Run::default()
            });
            run.usage = run.usage.plus(room.silent);
            run.cost_usd = match (run.cost_usd, room.silent_cost) {
                (Some(known), Some(more)) => Some(known + more),
                (known, more) => known.or(more),
            };
            run
        };
        rooms.into_iter().map(run).collect()
    }
}

impl<'a> Room<'a> {
    fn is_empty(&self) -> bool {
        self.builder.len() == 0 && !self.builder.is_speaking()
    }

    fn model_call(&mut self, span: &mut Span<'a>, is_alone: bool) {
        self.listen(std::mem::take(&mut span.told), is_alone);
        let said = std::mem::take(&mut span.said);
        if said.is_empty() {
            self.silent = self.silent.plus(span.usage);
            self.silent_cost = match (self.silent_cost, span.cost_usd) {
                (Some(known), Some(more)) => Some(known + more),
                (known, more) => known.or(more),
            };
            return;
        }
        // All output messages of the span form one turn with its usage and cost.
        self.builder.take(Event::Begin(Turn {
            id: Some(span.id.clone()),
            at_ms: span.start_ms,
            agent: None,
            model: span.model.clone(),
            usage: span.usage,
            cost_usd: span.cost_usd,
        }));
        for event in said {
            match event {
                Event::Begin(_) => {}
                Event::Answers(answer) => drop(self.builder.answer(answer)),
                event @ (Event::User(_) | Event::Says(_) | Event::Reasons(_) | Event::Calls(_)) => {
                    self.builder.take(event);
                }
            }
        }
    }

    /// Reads the input messages of a model call. Past turns of the model are taken only from the first call, and
    /// only if `is_alone`.
    fn listen(&mut self, told: Vec<Event<'a>>, is_alone: bool) {
        let asked: Vec<&Text<'a>> = told
            .iter()
            .filter_map(|event| match event {
                Event::User(text) => Some(text),
                Event::Begin(_)
                | Event::Says(_)
                | Event::Reasons(_)
                | Event::Calls(_)
                | Event::Answers(_) => None,
            })
            .collect();
        let count = asked.len();
        let last = asked.last().map(|text| (*text).clone()).unwrap_or_default();
        // A longer history ends with the new messages; a shorter one contains at most one new message.
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let known = if is_first && !is_alone {
            count.saturating_sub(1)
        } else if count > self.asked {
            self.asked
        } else if last == self.asked_last {
            count
        } else {
            count.saturating_sub(1)
        };
        let mut at = 0;
        for event in told {
            match event {
                Event::User(text) => {
                    at += 1;
                    if at > known {
                        self.builder.take(Event::User(text));
                    }
                }
                Event::Answers(answer) => drop(self.builder.answer(answer)),
                event
                @ (Event::Begin(_) | Event::Says(_) | Event::Reasons(_) | Event::Calls(_)) => {
                    if is_first && is_alone {
                        self.builder.take(event);
                    }
                }
            }
        }
        self.asked = self.asked.max(count);
        if !last.is_empty() {
            self.asked_last = last;
        }
    }

    fn tool_call(&mut self, span: &mut Span<'a>) {
        let answer = Answer {
            id: span.call_id.clone(),
            tool: Some(span.name.clone()),
            text: std::mem::take(&mut span.output),
            is_error: span.is_error,
        };
        let Err(answer) = self.builder.answer(answer) else { return };
        // The output of the model was not recorded, so the tool span is the only record of the call.
        let by_name = Answer { id: None, ..answer };
        let Err(answer) = self.builder.answer(by_name) else { return };
        self.builder.take(Event::Begin(Turn { at_ms: span.start_ms, ..Turn::default() }));
        let input = std::mem::take(&mut span.input);
        self.builder.take(Event::Calls(Call { id: None, tool: span.name.clone(), input }));
        drop(self.builder.answer(answer));
    }
}
