//! A run that was stored: what was read and said then. State and difficulty are found again from the thoughts.

use std::borrow::Cow;

use rb_engine::analysis::difficulty::difficulty;
use rb_engine::guidance::OPERATOR_PREFIX;
use rb_engine::monitors::ALL;
use rb_engine::policy::fsm::{Fsm, Limits};
use rb_engine::run::record::FIRST_CALL;
use rb_store::{RunRow, StepRow};

use super::{EvidenceView, RunView, StepView};

/// The run and its steps as they are drawn.
pub fn stored<'a>(run: &'a RunRow, rows: &'a [StepRow]) -> RunView<'a> {
    let monitors = monitors(rows);
    let mut fsm = Fsm::new(Limits::default());
    let steps = rows.iter().map(|row| {
        let has_thought = !row.thought.trim().is_empty() && row.thought != FIRST_CALL;
        let difficulty = has_thought.then(|| difficulty(&row.thought));
        let state = difficulty.map_or(fsm.state(), |difficulty| fsm.advance(difficulty));
        let score =
            |monitor: &Cow<'_, str>| row.scores.get(monitor.as_ref()).copied().unwrap_or_default();
        let scores = monitors.iter().map(score).collect();
        StepView { difficulty, state, scores, ..step(row) }
    });
    let steps = steps.collect();
    RunView {
        name: Cow::Borrowed(&run.run.run_id),
        place: Cow::Borrowed(""),
        task: Cow::Borrowed(&run.task),
        outcome: run.outcome.as_deref().map(Cow::Borrowed),
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

/// Every monitor that read, in the order of the engine's table; those it does not know come last.
fn monitors(rows: &[StepRow]) -> Vec<Cow<'_, str>> {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| row.scores.keys().map(AsRef::as_ref)).collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| ALL.iter().position(|spec| spec.id == *name).unwrap_or(ALL.len()));
    names.into_iter().map(Cow::Borrowed).collect()
}

fn step(row: &StepRow) -> StepView<'_> {
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
    let evidence = row.evidence.iter().map(|seen| EvidenceView {
        monitor: Cow::Borrowed(seen.monitor.as_str()),
        score: seen.score,
        text: Cow::Borrowed(seen.text.as_str()),
        steps: seen.steps.clone(),
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
        fired: row.fired.iter().map(|name| Cow::Borrowed(name.as_str())).collect(),
        evidence: evidence.collect(),
        said: said(row),
        ..StepView::default()
    }
}

/// The full words where they were kept, and what else was injected as far as it was told.
fn said(row: &StepRow) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let full = row.intervention_texts.iter().map(|text| {
        let by = if text.starts_with(OPERATOR_PREFIX) { "by hand" } else { "advice" };
        (by, text.as_str())
    });
    let sources =
        row.injection_sources.iter().map(String::as_str).chain(std::iter::repeat("guidance"));
    let rest = row.injections.iter().zip(sources).filter(|(preview, _)| {
        let begins = preview.trim_end_matches('…');
        !row.intervention_texts.iter().any(|text| text.contains(begins))
    });
    let rest = rest.map(|(preview, source)| (source, preview.as_str()));
    let said = full.chain(rest).map(|(by, text)| (Cow::Borrowed(by), Cow::Borrowed(text)));
    said.collect()
}
