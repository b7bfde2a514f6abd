//! View of a stored run: recorded scores and guidance, with difficulties recomputed from the thoughts.

use std::borrow::Cow;
use std::sync::LazyLock;

use rb_engine::analysis::difficulty::difficulty;
use rb_engine::guidance::OPERATOR_PREFIX;
use rb_engine::monitors::ALL;
use rb_engine::policy::Policy;
use rb_engine::policy::fsm::{Fsm, Limits, State};
use rb_engine::run::record::FIRST_CALL;
use rb_store::{RunRow, StepRow};

use crate::model::{EvidenceView, RunView, StepView};

/// Policy of all stored runs.
static POLICY: LazyLock<Policy> = LazyLock::new(Policy::default);

/// Recomputes the FSM states of rows that were stored without one.
///
/// The FSM depends on all earlier steps. A page that starts in the middle of such a run must feed the rows before it
/// to [`StateReplay::observe`] first; [`StateReplay::is_needed`] reports if that is the case.
#[derive(Debug)]
pub struct StateReplay(Fsm);

impl Default for StateReplay {
    fn default() -> Self {
        Self(Fsm::new(Limits::default()))
    }
}

impl StateReplay {
    /// Returns true if the rows before this page determine a state on it.
    pub fn is_needed(page: &[StepRow]) -> bool {
        let is_continued = page.first().is_some_and(|row| row.step_index > 0);
        is_continued && page.iter().any(|row| recorded_state(row).is_none())
    }

    /// Advances by one row and returns the state after it: the recorded one, else the recomputed one.
    pub fn observe(&mut self, row: &StepRow) -> State {
        if let Some(difficulty) = difficulty_of(row) {
            self.0.advance(difficulty);
        }
        recorded_state(row).unwrap_or_else(|| self.0.state())
    }
}

fn recorded_state(row: &StepRow) -> Option<State> {
    State::from_name(&row.state)
}

fn difficulty_of(row: &StepRow) -> Option<f64> {
    let has_thought = !row.thought.trim().is_empty() && row.thought != FIRST_CALL;
    has_thought.then(|| difficulty(&row.thought))
}

/// Builds the view of consecutive rows of a run. `states` has observed the rows before them, if
/// [`StateReplay::is_needed`].
pub fn from_store<'a>(
    run: &'a RunRow,
    rows: &'a [StepRow],
    mut states: StateReplay,
) -> RunView<'a> {
    let monitors = monitors(rows);
    let steps = rows.iter().map(|row| {
        let score =
            |monitor: &Cow<'_, str>| row.scores.get(monitor.as_ref()).copied().unwrap_or_default();
        StepView {
            difficulty: difficulty_of(row),
            state: states.observe(row),
            scores: monitors.iter().map(score).collect(),
            ..step(row)
        }
    });
    let steps = steps.collect();
    RunView {
        name: Cow::Borrowed(&run.run.run_id),
        place: Cow::Borrowed(""),
        task: Cow::Borrowed(&run.task),
        outcome: run.outcome.as_deref().map(Cow::Borrowed),
        is_running: false,
        agent: Cow::Borrowed(&run.agent_name),
        model: Cow::Borrowed(&run.model),
        started_ms: Some(run.started_ms),
        ended_ms: run.finished_ms.or(Some(run.seen_ms)),
        tokens: Some(run.tokens.total).filter(|tokens| *tokens > 0),
        cost_usd: Some(run.cost_usd).filter(|cost| *cost > 0.0),
        monitors,
        steps,
    }
}

/// Returns every monitor with a score: those that fire in the order of the engine's table, unknown ones, quiet ones.
fn monitors(rows: &[StepRow]) -> Vec<Cow<'_, str>> {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| row.scores.keys().map(AsRef::as_ref)).collect();
    names.sort_unstable();
    names.dedup();
    let place = |name: &str| ALL.iter().position(|spec| spec.id == name).unwrap_or(ALL.len());
    names.sort_by_key(|name| (POLICY.is_quiet(name), place(name)));
    names.into_iter().map(Cow::Borrowed).collect()
}

fn step(row: &StepRow) -> StepView<'_> {
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
    // Older rows have the quiet monitors in `fired`.
    let fired = row.fired.iter().map(String::as_str).filter(|name| !POLICY.is_quiet(name));
    let fired = fired.map(Cow::Borrowed);
    let signals = POLICY.signals(|name| row.scores.get(name).copied()).map(Cow::Borrowed);
    let evidence = row.evidence.iter().map(|evidence| EvidenceView {
        monitor: Cow::Borrowed(evidence.monitor.as_str()),
        score: evidence.score,
        text: Cow::Borrowed(evidence.text.as_str()),
        steps: evidence.steps.clone(),
    });
    StepView {
        index: row.step_index,
        user_input: Cow::Borrowed(&row.user_input),
        thought: Cow::Borrowed(&row.thought),
        action: Cow::Owned(text(&row.action)),
        input: Cow::Owned(text(&row.action_input)),
        observation: Cow::Owned(text(&row.observation)),
        is_error: row.is_error,
        tokens: Some(row.tokens.total).filter(|tokens| *tokens > 0),
        cost_usd: Some(row.cost_usd).filter(|cost| *cost > 0.0),
        composite: row.total_score,
        fired: fired.collect(),
        signals: signals.collect(),
        evidence: evidence.collect(),
        guidance: guidance(row),
        ..StepView::default()
    }
}

/// Returns the full guidance texts, then injections of which only a preview was reported.
fn guidance(row: &StepRow) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let full = row.intervention_texts.iter().map(|text| {
        let source = if text.starts_with(OPERATOR_PREFIX) { "operator" } else { "advice" };
        (source, text.as_str())
    });
    let sources =
        row.injection_sources.iter().map(String::as_str).chain(std::iter::repeat("guidance"));
    let previews = row.injections.iter().zip(sources).filter(|(preview, _)| {
        let prefix = preview.trim_end_matches('…');
        !row.intervention_texts.iter().any(|text| text.contains(prefix))
    });
    let previews = previews.map(|(preview, source)| (source, preview.as_str()));
    let all = full.chain(previews);
    all.map(|(source, text)| (Cow::Borrowed(source), Cow::Borrowed(text))).collect()
}
