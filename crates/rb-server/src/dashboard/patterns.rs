//! The library: read, add, edit, delete. Changes go the way that requests to the API go, with the same checks.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use rb_store::PatternRow;
use serde_json::{Map, Value, json};

use super::form::Form;
use super::layout;
use super::visitor::{Visitor, to};
use crate::api::library as api;
use crate::app::Shared;
use crate::body::{Body, Query};
use crate::error::{ApiError, ApiResult};
use crate::path::Path;
use crate::view::text::{Shown, grouped, line, name};

const HERE: &str = "/ui/patterns";
const TEXT_CHARS_MAX: usize = 8_000;

/// The texts of a tier, as people fill them in: field and label.
fn texts(tier: &str) -> &'static [(&'static str, &'static str)] {
    match tier {
        "e1" => {
            &[("situation", "Situation"), ("dead_ends", "Dead ends"), ("unlock", "What unlocks it")]
        }
        "e2" => &[
            ("trajectory", "Trajectory"),
            ("diagnosis", "Diagnosis"),
            ("intervention", "Intervention"),
            ("avoid", "Avoid"),
        ],
        _ => {
            &[("instruction", "Instruction"), ("meta_reasoning_prompt", "Question to ask oneself")]
        }
    }
}

pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let tier = query.as_deref().and_then(|query| query.strip_prefix("new="));
    draw(&app, &visitor, tier.filter(|tier| ["e1", "e2", "e3"].contains(tier)))
        .await
        .unwrap_or_else(layout::problem)
}

async fn draw(app: &Shared, visitor: &Visitor, new: Option<&str>) -> ApiResult<Response> {
    app.patterns.write_uses().await;
    let rows = app.store.patterns(&visitor.caller.scope(None, None)).await?;
    let is_ours = |row: &PatternRow| row.tier == "e1" || visitor.caller.is_operator();
    let body = html! {
        h1 { "Patterns" }
        p.lead { "What agents are told when a situation is known: E1 for one problem, E2 for a way of going wrong, E3 for standing rules." }
        p { "Add: " @for tier in ["e1", "e2", "e3"] {
            @if tier == "e1" || visitor.caller.is_operator() { a href={ (HERE) "?new=" (tier) } { (tier.to_uppercase()) } " " } } }
        @if let Some(tier) = new {
            div.card { h2 { "New " (tier.to_uppercase()) } (form(visitor, &PatternRow { tier: tier.to_owned(), ..PatternRow::default() })) }
        }
        @for tier in ["e1", "e2", "e3"] {
            @let of_tier: Vec<_> = rows.iter().filter(|row| row.tier == tier).collect();
            @if !of_tier.is_empty() {
                section { h2 { (tier.to_uppercase()) span.soft { " " (of_tier.len()) } }
                    @for row in of_tier { (card(visitor, row, is_ours(row))) } }
            }
        }
    };
    Ok(layout::page(visitor, HERE, "Patterns", &body))
}

fn text<'a>(row: &'a PatternRow, field: &str) -> &'a str {
    row.fields.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn card(visitor: &Visitor, row: &PatternRow, is_ours: bool) -> Markup {
    let filled =
        texts(&row.tier).iter().map(|(field, _)| text(row, field)).find(|text| !text.is_empty());
    let title = filled.unwrap_or(&row.context);
    html! {
        details.card {
            summary { (Shown(&line(title, 110), 111)) " "
                @if let Some(kind) = &row.failure_type { span.mark { (name(kind)) } " " }
                span.soft { "used " (grouped(row.uses)) " times" } }
            @if is_ours {
                (form(visitor, row))
                form method="post" action={ (HERE) "/delete" } {
                    (visitor.token())
                    (hidden(row))
                    button.plain { "Delete" }
                }
            } @else {
                @for (field, label) in texts(&row.tier) {
                    @if !text(row, field).is_empty() { h4 { (label) } p { (Shown(text(row, field), TEXT_CHARS_MAX)) } }
                }
            }
        }
    }
}

fn hidden(row: &PatternRow) -> Markup {
    html! {
        input type="hidden" name="tier" value=(row.tier);
        input type="hidden" name="id" value=(row.pattern_id);
        input type="hidden" name="org" value=(row.org);
    }
}

fn form(visitor: &Visitor, row: &PatternRow) -> Markup {
    html! {
        form.stack method="post" action=(HERE) {
            (visitor.token())
            (hidden(row))
            @for (field, label) in texts(&row.tier) {
                label { (label) textarea name=(field) { (text(row, field)) } }
            }
            label { "Compared with a run's situation, one a line" textarea name="context" { (row.context) } }
            label { "Failure type" input name="failure_type" value=(row.failure_type.as_deref().unwrap_or_default()); }
            div { button.main { "Save" } }
        }
    }
}

/// Adds a pattern, or changes the one that the form names.
pub(super) async fn save(State(app): State<Shared>, visitor: Visitor, form: Form) -> Response {
    match put(&app, &visitor, &form).await {
        Ok(()) => to(HERE),
        Err(error) => layout::problem(error),
    }
}

async fn put(app: &Shared, visitor: &Visitor, form: &Form) -> ApiResult<()> {
    visitor.check(form)?;
    let (tier, id, org) = (form.get("tier"), form.get("id"), form.get("org"));
    let given =
        texts(tier).iter().map(|(field, _)| ((*field).to_owned(), Value::from(form.get(field))));
    let given: Map<String, Value> = given.collect();
    let mut about = json!({ "fields": given, "failure_type": form.get("failure_type"), "context": form.get("context") });
    let (state, caller) = (State(Shared::clone(app)), visitor.caller.clone());
    if id.is_empty() {
        about["tier"] = Value::from(tier);
        about["org_id"] = Value::from(org);
        let _added = api::add(state, caller, Body(read(about)?)).await?;
        return Ok(());
    }
    let path = Path((tier.to_owned(), id.to_owned()));
    let _changed = api::change(
        state,
        caller,
        path,
        Query(read(json!({ "org_id": org }))?),
        Body(read(about)?),
    )
    .await?;
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> ApiResult<T> {
    serde_json::from_value(value).map_err(|error| ApiError::BadRequest(error.to_string()))
}

pub(super) async fn delete(State(app): State<Shared>, visitor: Visitor, form: Form) -> Response {
    let gone = async {
        visitor.check(&form)?;
        let path = Path((form.get("tier").to_owned(), form.get("id").to_owned()));
        let whose = Query(read(json!({ "org_id": form.get("org") }))?);
        api::remove(State(Shared::clone(&app)), visitor.caller.clone(), path, whose).await
    };
    match gone.await {
        Ok(_) => to(HERE),
        Err(error) => layout::problem(error),
    }
}
