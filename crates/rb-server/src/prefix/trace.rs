//! The bytes of a request into steps and settings. Steps stay raw until somebody wants to look at them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Blocks, Mark, Prefixes, TRAIL_BYTES_MIN, Trail};
use crate::body;
use crate::error::{ApiError, Fault, Place};
use crate::judge::Suite;

/// Everything of a request but its steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Settings {
    pub(crate) model: Option<String>,
    pub(crate) task_profile: Option<String>,
    pub(crate) weights: Option<BTreeMap<String, f64>>,
    pub(crate) suite: Option<Suite>,
    pub(crate) run_id: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) org_id: Option<String>,
    pub(crate) project_id: Option<String>,
    pub(crate) after_mark: Option<String>,
}

/// A request as it is parsed.
#[derive(Debug, Deserialize)]
struct Whole<'a> {
    model: Option<String>,
    task_profile: Option<String>,
    weights: Option<BTreeMap<String, f64>>,
    suite: Option<Suite>,
    run_id: Option<String>,
    task: Option<String>,
    org_id: Option<String>,
    project_id: Option<String>,
    after_mark: Option<String>,
    #[serde(borrow, default)]
    steps: Option<Vec<&'a RawValue>>,
}

impl Whole<'_> {
    fn settings(self) -> Settings {
        let Self { model, task_profile, weights, suite, run_id, task, org_id, project_id, .. } =
            self;
        let after_mark = self.after_mark;
        Settings {
            model,
            task_profile,
            weights,
            suite,
            run_id,
            task,
            org_id,
            project_id,
            after_mark,
        }
    }
}

impl Settings {
    /// What is set here and not there: what stood before the steps, given what stands behind them.
    fn without(self, other: &Self) -> Self {
        fn left<T>(mine: Option<T>, other: Option<&T>) -> Option<T> {
            mine.filter(|_| other.is_none())
        }
        Self {
            model: left(self.model, other.model.as_ref()),
            task_profile: left(self.task_profile, other.task_profile.as_ref()),
            weights: left(self.weights, other.weights.as_ref()),
            suite: left(self.suite, other.suite.as_ref()),
            run_id: left(self.run_id, other.run_id.as_ref()),
            task: left(self.task, other.task.as_ref()),
            org_id: left(self.org_id, other.org_id.as_ref()),
            project_id: left(self.project_id, other.project_id.as_ref()),
            after_mark: left(self.after_mark, other.after_mark.as_ref()),
        }
    }

    /// Both together; `None` where one thing is set twice.
    fn with(&self, behind: Self) -> Option<Self> {
        let mut both = self.clone();
        let is_clear = put(&mut both.model, behind.model)
            && put(&mut both.task_profile, behind.task_profile)
            && put(&mut both.weights, behind.weights)
            && put(&mut both.suite, behind.suite)
            && put(&mut both.run_id, behind.run_id)
            && put(&mut both.task, behind.task)
            && put(&mut both.org_id, behind.org_id)
            && put(&mut both.project_id, behind.project_id)
            && put(&mut both.after_mark, behind.after_mark);
        is_clear.then_some(both)
    }
}

/// Puts a value where there is none; says whether there was room.
fn put<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    if value.is_none() {
        return true;
    }
    let is_free = place.is_none();
    *place = value;
    is_free
}

/// A request, unpacked as far as needed.
pub(crate) struct Trace {
    pub(crate) settings: Settings,
    pub(crate) steps: Steps,
}

/// The steps of a request: some that were seen before, and the rest.
pub(crate) struct Steps {
    body: Bytes,
    /// How many steps were recognised, and their mark.
    pub(crate) known: (u32, Mark),
    /// The request brings only what comes after that mark; how many steps came before, it does not say.
    pub(crate) is_after: bool,
    new: Vec<Range<usize>>,
    head: Option<Arc<Settings>>,
}

/// One step as clients send it. Everything may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct StepIn {
    /// The model's visible text of this turn. Beyond 64,000 characters it is cut.
    #[serde(default)]
    pub(crate) thought: Option<String>,
    /// The tool that was called.
    #[serde(default)]
    pub(crate) action: Option<String>,
    /// What it was given: text, or any JSON.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub(crate) action_input: Option<Box<RawValue>>,
    /// What came back.
    #[serde(default)]
    pub(crate) observation: Option<String>,
    /// The call failed.
    #[serde(default)]
    pub(crate) observation_is_error: Option<bool>,
    /// What a person said just before this step.
    #[serde(default)]
    pub(crate) user_input: Option<String>,
}

impl Steps {
    pub(crate) fn count(&self) -> usize {
        self.known.0 as usize + self.new.len()
    }

    /// Steps that were not recognised.
    pub(crate) fn new_count(&self) -> usize {
        self.new.len()
    }

    /// The mark after each new step.
    pub(crate) fn marks(&self, prefixes: &Prefixes) -> Vec<Mark> {
        let mut mark = self.known.1;
        let mut marks = Vec::with_capacity(self.new.len());
        for step in &self.new {
            mark = mark.then(prefixes.seed, self.body.get(step.clone()).unwrap_or_default());
            marks.push(mark);
        }
        marks
    }

    /// A new step, by its place among them.
    pub(crate) fn parse(&self, at: usize) -> Result<StepIn, ApiError> {
        let bytes = self.new.get(at).and_then(|step| self.body.get(step.clone()));
        body::parse(bytes.unwrap_or(b"{}")).map_err(|error| self.placed(at, error))
    }

    /// The fault with its place in the whole body.
    fn placed(&self, at: usize, error: ApiError) -> ApiError {
        let ApiError::Unprocessable(faults) = error else { return error };
        let position = self.known.0 as usize + at;
        let before = [
            Place::Name("body".to_owned()),
            Place::Name("steps".to_owned()),
            Place::Position(position),
        ];
        let placed = faults.into_iter().map(|fault| {
            let loc = before.iter().cloned().chain(fault.loc.into_iter().skip(1)).collect();
            Fault { loc, ..fault }
        });
        ApiError::Unprocessable(placed.collect())
    }
}

impl Prefixes {
    /// Unpacks a request of one owner; what an earlier one had is skipped.
    pub(crate) fn read(
        &self,
        owner: &str,
        blocks: &Blocks,
        body: &Bytes,
    ) -> Result<Trace, ApiError> {
        match self.continued(blocks, body) {
            Some(trace) => Ok(trace),
            None => self.read_whole(owner, body),
        }
    }

    /// Unpacks a request from its beginning.
    pub(crate) fn read_whole(&self, owner: &str, body: &Bytes) -> Result<Trace, ApiError> {
        let mut whole: Whole<'_> = body::parse_borrowed(body)?;
        let raw = whole.steps.take().unwrap_or_default();
        let new: Vec<Range<usize>> = raw.into_iter().map(|step| range_in(body, step)).collect();
        let settings = whole.settings();
        if let Some(mark) = &settings.after_mark {
            let known = (0, Mark::read(mark).unwrap_or(Mark::NOWHERE));
            let steps = Steps { body: body.clone(), known, is_after: true, new, head: None };
            return Ok(Trace { settings, steps });
        }
        let head = new.last().and_then(|last| {
            let (_, tail) = rest_of(body, last.end)?;
            Some(Arc::new(settings.clone().without(&tail)))
        });
        let known = (0, Mark::of(self.seed, owner.as_bytes()));
        let steps = Steps { body: body.clone(), known, is_after: false, new, head };
        Ok(Trace { settings, steps })
    }

    fn continued(&self, blocks: &Blocks, body: &Bytes) -> Option<Trace> {
        let trail = self.trail(blocks, body)?;
        let (new, behind) = rest_of(body, trail.end)?;
        let settings = trail.head.with(behind)?;
        if settings.after_mark.is_some() {
            return None; // the same steps after others are other steps
        }
        let (known, head) = ((trail.count, trail.steps), Some(trail.head));
        let steps = Steps { body: body.clone(), known, is_after: false, new, head };
        Some(Trace { settings, steps })
    }

    /// Remembers where the last step of a request ends.
    pub(crate) fn keep(&self, blocks: &Blocks, steps: &Steps, last: Mark) {
        let (Some(range), Some(head)) = (steps.new.last(), &steps.head) else { return };
        if range.end < TRAIL_BYTES_MIN {
            return;
        }
        let from = range.end - range.end % super::BLOCK_BYTES;
        let Some(rest) = steps.body.get(from..range.end) else { return };
        let trail = Trail {
            end: range.end,
            rest: Mark::of(self.seed, rest),
            steps: last,
            count: u32::try_from(steps.count()).unwrap_or(u32::MAX),
            head: Arc::clone(head),
        };
        self.keep_trail(blocks, &steps.body, trail);
    }
}

/// Where a borrowed value stands in the body.
fn range_in(body: &[u8], value: &RawValue) -> Range<usize> {
    let start = (value.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
    start..start + value.get().len()
}

/// What follows a step: further steps, then the settings behind them. `None` if it is anything else.
fn rest_of(body: &[u8], end: usize) -> Option<(Vec<Range<usize>>, Settings)> {
    let mut at = skip_space(body, end);
    let mut steps = Vec::new();
    while body.get(at) == Some(&b',') {
        let mut values = serde_json::Deserializer::from_slice(body.get(at + 1..)?).into_iter();
        let value: &RawValue = values.next()?.ok()?;
        let range = range_in(body, value);
        at = skip_space(body, range.end);
        steps.push(range);
    }
    if body.get(at) != Some(&b']') {
        return None;
    }
    at = skip_space(body, at + 1);
    let tail = match body.get(at)? {
        b'}' => body.get(at..)?,
        b',' => body.get(at + 1..)?,
        _ => return None,
    };
    let object: Vec<u8> = std::iter::once(b'{').chain(tail.iter().copied()).collect();
    let whole: Whole<'_> = serde_json::from_slice(&object).ok()?;
    // A second list of steps would replace the first one.
    whole.steps.is_none().then(|| (steps, whole.settings()))
}

fn skip_space(body: &[u8], from: usize) -> usize {
    let rest = body.get(from..).unwrap_or_default();
    let spaces = rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
    from + spaces
}
