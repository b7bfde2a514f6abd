//! Preview of other weights on stored runs. Composites are recomputed from stored scores; monitors do not run
//! again.

use maud::{Markup, html};
use rb_engine::config::weights::Weights;
use rb_engine::monitors::{ALL, MonitorSpec};
use rb_engine::policy::Policy;
use rb_store::{Health, RunFilter, RunRow, Scores, StepRow};

use super::runs::address;
use crate::DashboardState;
use crate::visitor::Visitor;
use rb_http::error::ApiResult;
use rb_view::bar;
use rb_view::text::{EscapedText, counted, line, name};

/// Number of latest runs in the preview, and number of steps of each.
const RUNS: u32 = 20;
const STEPS: u32 = 300;

/// Summary of the composites of a run.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    peak: f64,
    /// Number of steps with a composite in the danger range.
    danger: usize,
}

impl Seen {
    fn of(composites: impl Iterator<Item = f64> + Clone) -> Self {
        Self {
            peak: composites.clone().fold(0.0, f64::max),
            danger: composites.filter(|composite| *composite >= Health::DANGER_FROM).count(),
        }
    }

    /// Summary of the stored composites.
    fn then(steps: &[StepRow]) -> Self {
        Self::of(steps.iter().map(|step| step.total_score))
    }

    fn under(weights: &Weights, steps: &[StepRow]) -> Self {
        Self::of(steps.iter().map(|step| composite(weights, &step.scores)))
    }
}

/// Returns the composite of stored scores.
fn composite(weights: &Weights, scores: &Scores) -> f64 {
    weights.composite(&Policy::default(), |spec| scores.get(spec.id).copied())
}

/// Returns the most serious monitor that fired on a step.
fn speaker(weights: &Weights, step: &StepRow) -> Option<&'static str> {
    let policy = Policy::default();
    let has_fired =
        |spec: &&MonitorSpec| policy.fires(spec.suite) && step.fired.iter().any(|id| id == spec.id);
    let score = |spec: &MonitorSpec| step.scores.get(spec.id).copied().unwrap_or_default();
    let mut fired: Vec<_> = ALL.into_iter().filter(has_fired).collect();
    fired.sort_by(|a, b| weights.order((a.id, score(a), true), (b.id, score(b), true)));
    fired.first().map(|spec| spec.id)
}

/// Returns the first step on which a monitor fired, with the most serious one.
fn first_word(weights: &Weights, steps: &[StepRow]) -> Option<(&'static str, u32)> {
    steps.iter().find_map(|step| Some((speaker(weights, step)?, step.step_index)))
}

/// Run with the summaries under its stored weights and the new weights, and the first monitor to fire.
struct Tried {
    run: RunRow,
    then: Seen,
    now: Seen,
    speaks: Option<(&'static str, u32)>,
}

/// Renders the latest runs with their stored composites and those under the given weights.
pub(super) async fn draw(
    dashboard: &DashboardState,
    visitor: &Visitor,
    weights: &Weights,
) -> ApiResult<Markup> {
    let scope = visitor.caller.scope(None, None);
    let newest = RunFilter { count_max: RUNS, ..RunFilter::default() };
    let mut rows = Vec::new();
    for run in dashboard.runtime.store.runs(&scope, &newest).await? {
        let steps = dashboard.runtime.store.steps(&run.run, 0, STEPS).await?;
        let (then, now) = (Seen::then(&steps), Seen::under(weights, &steps));
        rows.push(Tried { run, then, now, speaks: first_word(weights, &steps) });
    }
    let count = |of: &dyn Fn(&Seen) -> bool| {
        let both = rows.iter().map(|tried| (of(&tried.then), of(&tried.now)));
        both.fold((0, 0), |sum, (a, b)| (sum.0 + usize::from(a), sum.1 + usize::from(b)))
    };
    let (danger, danger_now) = count(&|seen| seen.danger > 0);
    let (clean, clean_now) = count(&|seen| seen.peak < Health::CLEAN_BELOW);
    Ok(html! {
        section id="preview" {
            h2 { "What these weights would have said" }
            @if rows.is_empty() { p.note { "There are no runs to try them on." } }
            @else {
                p.verdict { "Of the newest " (counted(rows.len(), "run")) ", " (danger_now) " would have been in danger (they were " (danger)
                    ") and " (clean_now) " clean (they were " (clean) ")." }
                p.soft { "Which monitors fire does not depend on weights; how high the composite goes does, and who speaks first." }
                div.scroll tabindex="0" role="group" aria-label="Runs under these weights" { table.cards {
                    thead { tr { th { "run" } th { "peak then" } th { "with these" } th.right { "steps in danger" } th { "would speak first" } } }
                    tbody { @for tried in &rows { (row(tried)) } }
                } }
            }
        }
    })
}

fn row(Tried { run, then, now, speaks }: &Tried) -> Markup {
    let title = if run.task.trim().is_empty() { &run.run.run_id } else { &run.task };
    html! {
        tr {
            td.what { a href=(address(&run.run)) { (EscapedText(&line(title, 70), 71)) } }
            td data-name="then" { (bar(then.peak, "fill-calm", &format!("{:.2}", then.peak))) }
            td data-name="with these" { (bar(now.peak, "fill-hot", &format!("{:.2}", now.peak))) }
            td.right data-name="in danger" { (then.danger) " → " (now.danger) }
            td { @match speaks {
                Some((monitor, step)) => { span.mark.hot { (name(monitor)) } span.soft { " step " (step) } }
                None => { span.soft { "nobody" } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step_index: u32, scores: &[(&str, f64)], fired: &[&str]) -> StepRow {
        StepRow {
            step_index,
            scores: scores.iter().map(|(id, score)| ((*id).to_owned().into(), *score)).collect(),
            fired: fired.iter().map(|id| (*id).to_owned()).collect(),
            ..StepRow::default()
        }
    }

    #[test]
    fn composites_and_voices_follow_the_weights() {
        let steps = [
            step(0, &[("streak", 1.0)], &[]),
            step(
                1,
                &[("streak", 1.0), ("claim_contradiction", 1.0)],
                &["streak", "claim_contradiction"],
            ),
        ];
        let check = |overrides: &[(&str, f64)]| {
            let (weights, _) = Weights::default().with(overrides.iter().copied());
            let seen = Seen::under(&weights, &steps);
            (seen.peak, seen.danger, first_word(&weights, &steps))
        };
        assert_eq!(check(&[]), (0.3, 0, Some(("claim_contradiction", 1))));
        assert_eq!(
            check(&[("claim_contradiction", 0.7)]),
            (0.7, 1, Some(("claim_contradiction", 1)))
        );
        assert_eq!(
            check(&[("streak", 0.0), ("claim_contradiction", 0.0)]),
            (0.0, 0, Some(("claim_contradiction", 1)))
        );
    }
}
