//! The list of runs: filters, search, and pages that begin where the last one ended.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use rb_engine::monitors::ALL;
use rb_store::{OutcomeClass, RunAfter, RunFilter, RunKey, RunRow};

use super::layout;
use super::visitor::Visitor;
use crate::app::Shared;
use crate::clock::{iso, now_ms};
use crate::view::text::{Shown, grouped, line, name};
use crate::view::{bar, or_dash, outcome};

const PAGE_RUNS: u32 = 50;
const DAY_MS: i64 = 86_400_000;

/// What the address asks for, as it stands in the form.
#[derive(Debug, Default, Clone, PartialEq)]
struct Asked {
    q: String,
    agent: String,
    model: String,
    outcome: String,
    fired: String,
    days: String,
    after: Option<RunAfter>,
}

impl Asked {
    fn read(query: &str) -> Self {
        let mut asked = Self::default();
        let (mut at, mut org, mut id) = (None, String::new(), None);
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim();
            match key.as_ref() {
                "q" => value.clone_into(&mut asked.q),
                "agent" => value.clone_into(&mut asked.agent),
                "model" => value.clone_into(&mut asked.model),
                "outcome" => value.clone_into(&mut asked.outcome),
                "fired" => value.clone_into(&mut asked.fired),
                "days" => value.clone_into(&mut asked.days),
                "after_ms" => at = value.parse().ok(),
                "after_org" => value.clone_into(&mut org),
                "after_id" => id = Some(value.to_owned()),
                _ => {}
            }
        }
        asked.after = at
            .zip(id)
            .map(|(started_ms, run_id)| RunAfter { started_ms, run: RunKey { org, run_id } });
        asked
    }

    fn filter(&self) -> RunFilter {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let since = self.days.parse::<i64>().ok().filter(|days| (1..=3_650).contains(days));
        RunFilter {
            agent_name: some(&self.agent),
            model: some(&self.model),
            outcome: OutcomeClass::ALL.into_iter().find(|class| class.name() == self.outcome),
            fired: some(&self.fired),
            text: some(&self.q),
            since_ms: since.map(|days| now_ms() - days * DAY_MS),
            after: self.after.clone(),
            count_max: PAGE_RUNS,
            ..RunFilter::default()
        }
    }

    /// The address of the page after this run.
    fn next(&self, last: &RunRow) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let kept = [
            ("q", &self.q),
            ("agent", &self.agent),
            ("model", &self.model),
            ("outcome", &self.outcome),
            ("fired", &self.fired),
            ("days", &self.days),
        ];
        query.extend_pairs(kept.iter().filter(|(_, value)| !value.is_empty()));
        query.append_pair("after_ms", &last.started_ms.to_string());
        query.append_pair("after_org", &last.run.org);
        query.append_pair("after_id", &last.run.run_id);
        format!("/?{}", query.finish())
    }
}

pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = Asked::read(&query.unwrap_or_default());
    let scope = visitor.caller.scope(None, None);
    let runs = match app.store.runs(&scope, &asked.filter()).await {
        Ok(runs) => runs,
        Err(error) => return layout::problem(error.into()),
    };
    let is_full = runs.len() == PAGE_RUNS as usize;
    let body = html! {
        h1 { "Runs" }
        (filters(&asked))
        @if runs.is_empty() {
            p.note { "No run fits. " a href="/ui/quickstart" { "Watch an agent" } " to see its runs here." }
        } @else {
            div.scroll tabindex="0" { (table(&runs)) }
        }
        @if let Some(last) = runs.last().filter(|_| is_full) {
            p.next { a href=(asked.next(last)) rel="next" { "Older runs" } }
        }
    };
    layout::page(&visitor, "/", "Runs", &body)
}

fn filters(asked: &Asked) -> Markup {
    let option = |value: &str, words: &str, chosen: &str| {
        html! {
            option value=(value) selected[value == chosen] { (words) }
        }
    };
    html! {
        form.filter method="get" action="/" role="search" {
            label { "Search" input type="search" name="q" value=(asked.q) placeholder="id, task or agent"; }
            label { "Agent" input name="agent" value=(asked.agent) size="12"; }
            label { "Model" input name="model" value=(asked.model) size="14"; }
            label { "Outcome" select name="outcome" {
                (option("", "any", &asked.outcome))
                @for class in OutcomeClass::ALL { (option(class.name(), class.name(), &asked.outcome)) }
            } }
            label { "Fired" select name="fired" {
                (option("", "any", &asked.fired))
                @for spec in ALL { (option(spec.id, spec.id, &asked.fired)) }
            } }
            label { "Began" select name="days" {
                @for (value, words) in [("", "any time"), ("1", "last day"), ("7", "last 7 days"), ("30", "last 30 days")] {
                    (option(value, words, &asked.days))
                }
            } }
            button { "Show" }
        }
    }
}

/// The address of a run's page.
pub(super) fn address(run: &RunKey) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("org", &run.org).append_pair("id", &run.run_id);
    format!("/ui/run?{}", query.finish())
}

fn table(runs: &[RunRow]) -> Markup {
    html! {
        table.runs {
            thead { tr { th { "run" } th { "outcome" } th { "peak" } th { "fired" } th.right { "steps" } th { "model" } th { "began" } } }
            tbody {
                @for run in runs {
                    @let title = if run.task.trim().is_empty() { &run.run.run_id } else { &run.task };
                    @let began: String = iso(run.started_ms).chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect();
                    tr {
                        td.what {
                            a href=(address(&run.run)) { (Shown(&line(title, 90), 91)) }
                            div.soft { (name(&run.run.run_id)) @if !run.agent_name.is_empty() { " · " (name(&run.agent_name)) } }
                        }
                        td { (outcome(run.outcome.as_deref())) }
                        td { (bar(run.score_peak, "fill-hot", &format!("{:.2}", run.score_peak))) }
                        td { @for monitor in run.fired.keys() { span.mark.hot { (name(monitor)) } " " } }
                        td.right { (grouped(run.step_count)) }
                        td { (or_dash(&run.model)) }
                        td.soft { (began) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_the_same_again() {
        let asked = Asked { q: "a&b=c".to_owned(), fired: "streak".to_owned(), ..Asked::default() };
        let last = RunRow {
            run: RunKey { org: "o/1".to_owned(), run_id: "r ü".to_owned() },
            started_ms: 7,
            ..RunRow::default()
        };
        let next = asked.next(&last);
        let after = Some(RunAfter { started_ms: 7, run: last.run });
        assert_eq!(Asked::read(next.strip_prefix("/?").unwrap()), Asked { after, ..asked });
    }
}
