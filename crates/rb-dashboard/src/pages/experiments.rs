//! Experiments: the list, and one page per experiment with the result, its interval, both arms and the caveats.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde_json::Value;

use crate::DashboardState;
use crate::form::field;
use crate::layout;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::experiments;
use rb_view::charts::interval;
use rb_view::text::{EscapedText, dollars, grouped, name};

pub(crate) const PAGE: Page =
    Page { name: "Experiments", path: "/ui/experiments", operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new().route("/ui/experiments", get(page))
}

const ON_FRACTION: f64 = 0.5;

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let drawn = match field(&query.unwrap_or_default(), "id") {
        Some(id) => one(&dashboard, &visitor, &id).await,
        None => list(&dashboard, &visitor).await,
    };
    drawn.unwrap_or_else(layout::problem)
}

/// Reads the report in the form that the API returns.
async fn read(dashboard: &DashboardState, visitor: &Visitor, id: &str) -> ApiResult<Value> {
    let runs = dashboard.runtime.store.experiment(&visitor.caller.scope(None, None), id).await?;
    if runs.is_empty() {
        return Err(ApiError::NotFound("no run is part of this experiment"));
    }
    let price =
        |model: &str, tokens: &_, at_ms| dashboard.runtime.prices.cost_usd(model, tokens, at_ms);
    let report = experiments::report(id, &runs, ON_FRACTION, price);
    serde_json::to_value(&report).map_err(|_| ApiError::Internal)
}

async fn list(dashboard: &DashboardState, visitor: &Visitor) -> ApiResult<Response> {
    let named = dashboard.runtime.store.experiments(&visitor.caller.scope(None, None)).await?;
    let address = |id: &str| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("id", id);
        format!("/ui/experiments?{}", query.finish())
    };
    let body = html! {
        h1 { "Experiments" }
        p.lead { "Runs whose metadata name an experiment and an arm: " code { "on" } " is steered, " code { "off" } " is only watched." }
        @if named.is_empty() { p.note { "There is none yet. Start runs with " code { "{\"experiment_id\": \"…\", \"arm\": \"on\"}" } " in their metadata, or set " code { "[gateway.experiment]" } "." } }
        @else { div.grid { @for (id, runs) in &named {
            div.card { h2 { a href=(address(id)) { (name(id)) } } p.soft { (grouped(*runs)) " runs" } }
        } } }
    };
    Ok(navigation::page(visitor, "/ui/experiments", "Experiments", &body))
}

async fn one(dashboard: &DashboardState, visitor: &Visitor, id: &str) -> ApiResult<Response> {
    let report = read(dashboard, visitor, id).await?;
    let rates = &report["comparison"]["success_rate"];
    let body = html! {
        nav.trail aria-label="Where this is" { a href="/ui/experiments" { "Experiments" } }
        h1 { (EscapedText(id, 200)) }
        p.verdict { (verdict(rates)) }
        @if let Some((delta, from, to)) = bounds(rates) {
            figure.days { figcaption { "Difference in success, steered against not, with its 95 % interval" }
                (interval("Difference in success", delta, from, to)) }
        }
        (also(&report["comparison"]))
        section { h2 { "Both arms" } (arms(&report)) }
        (strata(&report["comparison"]["success_rate_stratified"]))
        @if let Some(caveats) = report["caveats"].as_array().filter(|caveats| !caveats.is_empty()) {
            section { h2 { "To be careful about" } ul.caveats {
                @for caveat in caveats { li { (EscapedText(caveat.as_str().unwrap_or_default(), 1_000)) } } } }
        }
        (split(&report["srm"]))
    };
    Ok(navigation::page(visitor, "/ui/experiments", id, &body))
}

/// Returns the difference and the bounds of its interval, if there is one.
fn bounds(rates: &Value) -> Option<(f64, f64, f64)> {
    let interval = &rates["ci_95"];
    Some((rates["delta"].as_f64()?, interval[0].as_f64()?, interval[1].as_f64()?))
}

/// Describes the difference and its interval in words.
fn verdict(rates: &Value) -> String {
    let Some((delta, from, to)) = bounds(rates) else {
        return "Nothing can be said yet: both arms need runs that have finished.".to_owned();
    };
    let [delta, low, high] = [delta, from, to].map(|share| share * 100.0);
    let sure = format!("{delta:+.1} points (95 %: {low:+.1} to {high:+.1})");
    if from > 0.0 {
        format!("Steered runs succeed more often: {sure}.")
    } else if to < 0.0 {
        format!("Steered runs succeed less often: {sure}.")
    } else {
        format!("No difference in success is shown: {sure}. More runs would narrow it.")
    }
}

/// Describes the change in tokens and in cost.
fn also(comparison: &Value) -> Markup {
    let percent = |what: &str| comparison[what]["pct"].as_f64().map(|share| share * 100.0);
    html! {
        @if let Some(tokens) = percent("tokens_per_run_median") {
            p { "A steered run uses " (format!("{:.0} % {}", tokens.abs(), if tokens < 0.0 { "fewer" } else { "more" })) " tokens (median)." }
        }
        @if let Some(cost) = percent("cost_per_run_usd") {
            p { "A steered run costs " (format!("{:.0} % {}", cost.abs(), if cost < 0.0 { "less" } else { "more" })) " on average." }
        }
    }
}

/// Number format of a value in the report.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Percent,
    Dollars,
    Score,
}

impl Unit {
    fn write(self, value: Option<&Value>) -> String {
        let Some(number) = value.and_then(Value::as_f64) else { return "–".to_owned() };
        match self {
            Self::Count => format!("{number:.0}").parse().map_or_else(|_| "–".to_owned(), grouped),
            Self::Percent => format!("{:.1} %", number * 100.0),
            Self::Dollars => dollars(number),
            Self::Score => format!("{number:.2}"),
        }
    }
}

fn arms(report: &Value) -> Markup {
    const ROWS: [(&str, &str, Unit); 12] = [
        ("runs", "/n_runs", Unit::Count),
        ("succeeded", "/outcomes/success", Unit::Count),
        ("failed", "/outcomes/failure", Unit::Count),
        ("other outcomes", "/outcomes/other", Unit::Count),
        ("unfinished", "/outcomes/unfinished", Unit::Count),
        ("success rate", "/success_rate", Unit::Percent),
        ("clean runs", "/reasoning_health/clean_run_rate", Unit::Percent),
        ("mean composite", "/reasoning_health/avg_score", Unit::Score),
        ("tokens a run (median)", "/tokens_per_run/median", Unit::Count),
        ("steps a run (median)", "/steps_per_run/median", Unit::Count),
        ("cost a run", "/cost/cost_per_run_usd", Unit::Dollars),
        ("steps with guidance", "/reasoning_health/injected_steps", Unit::Count),
    ];
    let cell = |arm: &str, place: &str, unit: Unit| unit.write(report["arms"][arm].pointer(place));
    html! {
        div.scroll tabindex="0" role="group" aria-label="Both arms" { table.narrow {
            thead { tr { th { "" span.hidden { "figure" } } th.right { "on (steered)" } th.right { "off (watched)" } } }
            tbody { @for (what, place, unit) in ROWS {
                tr { th scope="row" { (what) } td.right { (cell("on", place, unit)) } td.right { (cell("off", place, unit)) } }
            } }
        } }
    }
}

/// Renders the results per kind of task, if there is more than one.
fn strata(stratified: &Value) -> Markup {
    let strata = stratified["strata"].as_array().map(Vec::as_slice).unwrap_or_default();
    let share = |of: &Value| {
        format!("{} of {}", of["success"].as_u64().unwrap_or(0), of["n_runs"].as_u64().unwrap_or(0))
    };
    let points = |value: &Value| {
        value
            .as_f64()
            .map_or_else(|| "–".to_owned(), |delta| format!("{:+.1} points", delta * 100.0))
    };
    html! {
        @if strata.len() > 1 { section {
            h2 { "By kind of task" }
            @if let Some((delta, from, to)) = bounds(stratified) {
                p { "Within kinds of tasks the difference is " (format!("{:+.1} points (95 %: {:+.1} to {:+.1})", delta * 100.0, from * 100.0, to * 100.0)) "." }
            }
            div.scroll tabindex="0" role="group" aria-label="By kind of task" { table.narrow {
                thead { tr { th { "task profile" } th.right { "on" } th.right { "off" } th.right { "difference" } } }
                tbody { @for stratum in strata { tr {
                    td { (name(stratum["task_profile"].as_str().unwrap_or_default())) }
                    td.right { (share(&stratum["on"])) } td.right { (share(&stratum["off"])) } td.right { (points(&stratum["delta"])) }
                } } }
            } }
        } }
    }
}

/// Renders the sizes of the arms and the test for a sample ratio mismatch.
fn split(srm: &Value) -> Markup {
    let observed = &srm["observed"];
    let sizes = format!(
        "{} steered and {} watched runs",
        observed["on"].as_u64().unwrap_or(0),
        observed["off"].as_u64().unwrap_or(0)
    );
    let p = srm["p_value"].as_f64().unwrap_or(1.0);
    html! {
        @if srm["flagged"].as_bool().unwrap_or(false) {
            p.notice role="note" { "The split looks wrong: " (sizes) " are very unlikely under an even split (p = " (format!("{p:.4}")) "). Something decides who is counted; find it before you believe the difference." }
        } @else { p.soft { "The split is as it should be: " (sizes) " (p = " (format!("{p:.2}")) ")." } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_verdict_follows_the_interval() {
        for (rates, begins) in [
            (json!({"delta": null, "ci_95": null}), "Nothing can be said yet"),
            (
                json!({"delta": 0.2, "ci_95": [0.05, 0.3]}),
                "Steered runs succeed more often: +20.0 points",
            ),
            (json!({"delta": -0.2, "ci_95": [-0.3, -0.1]}), "Steered runs succeed less often"),
            (json!({"delta": 0.0, "ci_95": [-0.1, 0.1]}), "No difference in success is shown"),
        ] {
            assert!(verdict(&rates).starts_with(begins), "{rates}");
        }
    }

    #[test]
    fn figures_are_written_in_their_units() {
        for (unit, value, written) in [
            (Unit::Count, json!(12_345), "12,345"),
            (Unit::Percent, json!(0.125), "12.5 %"),
            (Unit::Dollars, json!(0.5), "$0.50"),
            (Unit::Score, json!(0.256), "0.26"),
            (Unit::Score, json!(null), "–"),
        ] {
            assert_eq!(unit.write(Some(&value)), written);
        }
    }
}
