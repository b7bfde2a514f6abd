//! List of runs with filters, search and cursor pagination.

use axum::Router;
use axum::routing::get;
use std::collections::BTreeSet;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use rb_engine::monitors::ALL;
use rb_engine::policy::Policy;
use rb_store::{OutcomeClass, RunAfter, RunFilter, RunKey, RunRow, is_running};

use crate::DashboardState;
use crate::layout;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_runtime::clock::{format_rfc3339, now_ms};
use rb_view::text::{EscapedText, ago, dollars, grouped, line, name};
use rb_view::{bar, outcome};

pub(crate) const PAGE: Page = Page { name: "Runs", path: "/", operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new().route("/", get(page))
}

const PAGE_RUNS: u32 = 50;
const DAY_MS: i64 = 86_400_000;
/// Maximum number of monitor names in a row.
const NAMED_MAX: usize = 3;

/// Filters from the query string, as shown in the form.
#[derive(Debug, Default, Clone, PartialEq)]
struct Asked {
    q: String,
    agent: String,
    model: String,
    outcome: String,
    fired: String,
    pattern: String,
    key: String,
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
                "pattern" => value.clone_into(&mut asked.pattern),
                "key" => value.clone_into(&mut asked.key),
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
            pattern: some(&self.pattern),
            key_name: some(&self.key),
            text: some(&self.q),
            since_ms: since.map(|days| now_ms() - days * DAY_MS),
            after: self.after.clone(),
            count_max: PAGE_RUNS,
            ..RunFilter::default()
        }
    }

    /// Returns the filters as query parameters.
    fn kept(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("q", &self.q),
            ("agent", &self.agent),
            ("model", &self.model),
            ("outcome", &self.outcome),
            ("fired", &self.fired),
            ("pattern", &self.pattern),
            ("key", &self.key),
            ("days", &self.days),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, it)| (name, it.as_str()))
    }

    /// Returns the URL of the page that follows this run.
    fn next(&self, last: &RunRow) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.kept());
        query.append_pair("after_ms", &last.started_ms.to_string());
        query.append_pair("after_org", &last.run.org);
        query.append_pair("after_id", &last.run.run_id);
        format!("/?{}", query.finish())
    }
}

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = Asked::read(&query.unwrap_or_default());
    let scope = visitor.caller.scope(None, None);
    let runs = match dashboard.runtime.store.runs(&scope, &asked.filter()).await {
        Ok(runs) => runs,
        Err(error) => return layout::problem(error.into()),
    };
    let is_full = runs.len() == PAGE_RUNS as usize;
    let is_filtered = asked.kept().next().is_some();
    let body = html! {
        div.title-row {
            h1 { "Runs" }
            @if asked.after.is_none() { span.live role="status" data-live="*" data-live-org="" { "reload to see more" } }
        }
        (filters(&asked, &runs))
        div data-part="runs" {
            @if runs.is_empty() {
                @if is_filtered { p.note { "No run fits. " a href="/" { "Show all runs" } } }
                @else { p.note { "There are no runs yet. " a href="/ui/quickstart" { "Watch an agent" } " to see its runs here." } }
            } @else {
                div.scroll tabindex="0" role="group" aria-label="Runs, newest first" { (table(&runs, now_ms())) }
            }
            @if let Some(last) = runs.last().filter(|_| is_full) {
                p.next { a href=(asked.next(last)) rel="next" { "Older runs" } }
            }
        }
    };
    navigation::page(&visitor, "/", "Runs", &body)
}

fn filters(asked: &Asked, runs: &[RunRow]) -> Markup {
    let option = |value: &str, words: &str, chosen: &str| {
        html! {
            option value=(value) selected[value == chosen] { (words) }
        }
    };
    // The suggestions are the values on the current page.
    let agents: BTreeSet<&str> = runs.iter().map(|run| run.agent_name.as_str()).collect();
    let models: BTreeSet<&str> = runs.iter().map(|run| run.model.as_str()).collect();
    html! {
        form.filter method="get" action="/" role="search" aria-label="Runs" {
            label.grow { "Search" input type="search" name="q" value=(asked.q) placeholder="id, task or agent"; }
            label { "Agent" input name="agent" value=(asked.agent) list="agents" autocomplete="off"; }
            label { "Model" input name="model" value=(asked.model) list="models" autocomplete="off"; }
            @for (id, names) in [("agents", agents), ("models", models)] {
                datalist id=(id) { @for name in names.into_iter().filter(|name| !name.is_empty()) { option value=(line(name, 200)) {} } }
            }
            label { "Outcome" select name="outcome" {
                (option("", "any", &asked.outcome))
                @for class in OutcomeClass::ALL { (option(class.name(), class.name(), &asked.outcome)) }
            } }
            label { "Fired" select name="fired" {
                (option("", "any", &asked.fired))
                @for spec in ALL.iter().filter(|spec| Policy::default().fires(spec.suite)) {
                    (option(spec.id, spec.id, &asked.fired))
                }
            } }
            label { "Began" select name="days" {
                @for (value, words) in [("", "any time"), ("1", "last day"), ("7", "last 7 days"), ("30", "last 30 days")] {
                    (option(value, words, &asked.days))
                }
            } }
            @for (field, label, value) in [("pattern", "Pattern", &asked.pattern), ("key", "Key", &asked.key)] {
                @if !value.is_empty() { label { (label) input name=(field) value=(value); } }
            }
            div.buttons { button.main { "Show" }
                @if asked.kept().next().is_some() { a href="/" { "Reset" } } }
        }
    }
}

/// Returns the URL of a run's page.
pub(crate) fn address(run: &RunKey) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("org", &run.org).append_pair("id", &run.run_id);
    format!("/ui/run?{}", query.finish())
}

/// Renders runs as a table, with times relative to `now_ms`.
pub(crate) fn table(runs: &[RunRow], now_ms: i64) -> Markup {
    html! {
        table.runs.cards {
            thead { tr { th { "run" } th { "outcome" } th { "peak" } th { "fired" } th.right { "steps" } th.right { "cost" } th.right { "began" } } }
            tbody { @for run in runs { (row(run, now_ms)) } }
        }
    }
}

fn row(run: &RunRow, now_ms: i64) -> Markup {
    let title = if run.task.trim().is_empty() { &run.run.run_id } else { &run.task };
    let is_running = is_running(run.outcome.as_deref(), run.seen_ms, now_ms);
    let policy = Policy::default();
    let mut fired: Vec<_> =
        run.fired.iter().filter(|(monitor, _)| !policy.is_quiet(monitor)).collect();
    fired.sort_by_key(|(_, steps)| std::cmp::Reverse(**steps));
    let more = fired.len().saturating_sub(NAMED_MAX);
    let signals: Vec<&String> =
        run.high_scores.keys().filter(|monitor| policy.is_quiet(monitor)).collect();
    html! {
        tr {
            td.what {
                a href=(address(&run.run)) { (EscapedText(&line(title, 90), 91)) }
                div.soft { (name(&line(&run.run.run_id, 60)))
                    @for said in [&run.agent_name, &run.model] { @if !said.is_empty() { " · " (name(&line(said, 60))) } } }
            }
            td { @if is_running { span.outcome.running { "running" } } @else { (outcome(run.outcome.as_deref())) } }
            td data-name="peak" { (bar(run.score_peak, heat(run.score_peak), &format!("{:.2}", run.score_peak))) }
            td.chips { @for (monitor, _) in fired.iter().take(NAMED_MAX) { span.mark.hot { (name(monitor)) } " " }
                @if more > 0 { span.mark { "+" (more) } }
                @for monitor in signals { span.mark.signal title="recorded, without advice" { (name(monitor)) } " " } }
            td.right data-name="steps" { (grouped(run.step_count)) }
            td.right data-name="cost" { @if run.cost_usd > 0.0 { (dollars(run.cost_usd)) } @else { span.soft { "–" } } }
            td.right.soft.when { time datetime=(format_rfc3339(run.started_ms)) title=(format_rfc3339(run.started_ms)) { (ago(now_ms - run.started_ms)) } }
        }
    }
}

/// Returns the CSS class for a composite.
fn heat(score: f64) -> &'static str {
    if score < 0.35 {
        "fill-calm"
    } else if score < 0.6 {
        "fill-warm"
    } else {
        "fill-hot"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_the_same_again() {
        let asked = Asked {
            q: "a&b=c".to_owned(),
            fired: "streak".to_owned(),
            pattern: "e1:x y".to_owned(),
            key: "ci".to_owned(),
            ..Asked::default()
        };
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
