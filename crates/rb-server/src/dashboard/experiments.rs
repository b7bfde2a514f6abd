//! Experiments: which there are, and what one shows, with the verdict in words.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::layout;
use super::visitor::Visitor;
use crate::app::Shared;
use crate::error::{ApiError, ApiResult};
use crate::report;
use crate::view::text::{Shown, grouped, name};

const ON_FRACTION: f64 = 0.5;

pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let id = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "id")
        .map(|(_, id)| id.into_owned());
    let drawn = match id {
        Some(id) => one(&app, &visitor, &id).await,
        None => list(&app, &visitor).await,
    };
    drawn.unwrap_or_else(layout::problem)
}

async fn list(app: &Shared, visitor: &Visitor) -> ApiResult<Response> {
    let named = app.store.experiments(&visitor.caller.scope(None, None)).await?;
    let address = |id: &str| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("id", id);
        format!("/ui/experiments?{}", query.finish())
    };
    let body = html! {
        h1 { "Experiments" }
        p.lead { "Runs whose metadata name an experiment and an arm: " code { "on" } " is steered, " code { "off" } " is only watched." }
        @if named.is_empty() { p.note { "There is none yet." } }
        @else { table {
            thead { tr { th { "experiment" } th.right { "runs" } } }
            tbody { @for (id, runs) in &named { tr { td { a href=(address(id)) { (name(id)) } } td.right { (grouped(*runs)) } } } }
        } }
    };
    Ok(layout::page(visitor, "/ui/experiments", "Experiments", &body))
}

async fn one(app: &Shared, visitor: &Visitor, id: &str) -> ApiResult<Response> {
    let runs = app.store.experiment(&visitor.caller.scope(None, None), id).await?;
    if runs.is_empty() {
        return Err(ApiError::NotFound("no run is part of this experiment"));
    }
    let price = |model: &str, tokens: &_, at_ms| app.prices.cost_usd(model, tokens, at_ms);
    let report = report::report(id, &runs, ON_FRACTION, price);
    // What people read is what programs read: the report as it goes over the wire.
    let report = serde_json::to_value(&report).map_err(|_| ApiError::Internal)?;
    let body = html! {
        p { a href="/ui/experiments" { "All experiments" } }
        h1 { (Shown(id, 200)) }
        p.verdict { (verdict(&report["comparison"]["success_rate"])) }
        section { h2 { "Both arms" } (arms(&report["arms"])) }
        @if let Some(caveats) = report["caveats"].as_array().filter(|caveats| !caveats.is_empty()) {
            section { h2 { "To be careful about" } ul {
                @for caveat in caveats { li { (Shown(caveat.as_str().unwrap_or_default(), 1_000)) } } } }
        }
    };
    Ok(layout::page(visitor, "/ui/experiments", id, &body))
}

/// What the difference and its interval say.
fn verdict(rates: &Value) -> String {
    let points = |value: &Value| value.as_f64().map(|share| share * 100.0);
    let (delta, from, to) =
        (points(&rates["delta"]), points(&rates["ci_95"][0]), points(&rates["ci_95"][1]));
    let (Some(delta), Some(from), Some(to)) = (delta, from, to) else {
        return "Nothing can be said yet: both arms need runs that have finished.".to_owned();
    };
    let sure = format!("{delta:+.1} points (95 %: {from:+.1} to {to:+.1})");
    if from > 0.0 {
        format!("Steered runs succeed more often: {sure}.")
    } else if to < 0.0 {
        format!("Steered runs succeed less often: {sure}.")
    } else {
        format!("No difference in success is shown: {sure}. More runs would narrow it.")
    }
}

fn arms(arms: &Value) -> Markup {
    const ROWS: [(&str, &str); 9] = [
        ("runs", "/n_runs"),
        ("succeeded", "/outcomes/success"),
        ("failed", "/outcomes/failure"),
        ("unfinished", "/outcomes/unfinished"),
        ("success rate", "/success_rate"),
        ("tokens a run (median)", "/tokens_per_run/median"),
        ("steps a run (median)", "/steps_per_run/median"),
        ("cost a run, $", "/cost/cost_per_run_usd"),
        ("clean runs", "/reasoning_health/clean_run_rate"),
    ];
    let cell = |arm: &str, place: &str| match arms[arm].pointer(place) {
        Some(Value::Number(number)) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => grouped(count),
            (None, Some(real)) => format!("{real:.3}"),
            (None, None) => "–".to_owned(),
        },
        Some(_) | None => "–".to_owned(),
    };
    html! {
        table {
            thead { tr { th {} th.right { "on" } th.right { "off" } } }
            tbody { @for (what, place) in ROWS {
                tr { td { (what) } td.right { (cell("on", place)) } td.right { (cell("off", place)) } }
            } }
        }
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
}
