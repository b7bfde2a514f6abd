//! Pattern library: list, create, edit, delete, and show the runs that used a pattern. Changes use the same code
//! and checks as the API.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use rb_store::{PatternFilter, PatternRow, RunFilter, Scope};
use serde_json::Value;

use super::runs;
use crate::DashboardState;
use crate::form::{Form, field};
use crate::layout;
use crate::layout::to;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_engine::guidance::Tier;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::clock::{day_of, format_day, now_ms};
use rb_runtime::library::{NewPattern, PatternAttributes, PatternId};
use rb_view::text::{EscapedText, counted, editable, grouped, line, name};

pub(crate) const PAGE: Page = Page { name: "Patterns", path: HERE, operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new()
        .route(HERE, get(page).post(save))
        .route("/ui/pattern", get(one))
        .route("/ui/patterns/delete", post(delete))
}

const HERE: &str = "/ui/patterns";
const TEXT_CHARS_MAX: usize = 8_000;
/// Maximum number of patterns per tier on the page; the search finds the others.
const PATTERNS_SHOWN: usize = 300;
/// Number of patterns per query.
const PATTERNS_AT_ONCE: u32 = 500;
/// Number of runs on the page of a pattern.
const RUNS_SHOWN: u32 = 10;

/// Tiers with their descriptions.
const TIERS: [(&str, &str); 3] = [
    ("e1", "What helped in a situation like this one; your own."),
    ("e2", "What helps against a kind of failure; everybody's."),
    ("e3", "Standing rules for every run."),
];

/// Returns the text fields of a tier with their labels.
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

/// Returns `true` if the visitor may change the tier: E1 patterns belong to an organisation, the others to the
/// operator.
fn may_change(visitor: &Visitor, tier: &str) -> bool {
    tier == "e1" || visitor.caller.is_operator()
}

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    draw(&dashboard, &visitor, &query.unwrap_or_default()).await.unwrap_or_else(layout::problem)
}

async fn draw(dashboard: &DashboardState, visitor: &Visitor, query: &str) -> ApiResult<Response> {
    dashboard.runtime.patterns.flush_uses().await;
    let scope = visitor.caller.scope(None, None);
    let wanted = field(query, "q").unwrap_or_default();
    let mut tiers = Vec::new();
    for (tier, about) in TIERS {
        tiers.push((tier, about, listed(dashboard, &scope, tier, &wanted).await?));
    }
    let body = html! {
        h1 { "Patterns" }
        p.lead { "What agents are told when a situation is known." }
        form.filter method="get" action=(HERE) role="search" aria-label="Patterns" {
            label.grow { "Search" input type="search" name="q" value=(wanted) placeholder="any words of a pattern"; }
            div.buttons { button.main { "Show" } }
        }
        @for (tier, about, Listed { rows, is_all }) in &tiers {
            section {
                div.title-row {
                    h2 { (tier.to_uppercase()) " " span.count { (rows.len()) @if !is_all { "+" } } }
                    @if may_change(visitor, tier) { a.button href={ "/ui/pattern?tier=" (tier) } { "Add " (tier.to_uppercase()) } }
                }
                p.soft { (about) }
                @if !rows.is_empty() { (table(rows)) }
                @if !is_all { p.soft { "There are more; search for some words of them." } }
            }
        }
    };
    Ok(navigation::page(visitor, HERE, "Patterns", &body))
}

/// First patterns of a tier that match the search.
struct Listed {
    rows: Vec<PatternRow>,
    is_all: bool,
}

async fn listed(
    dashboard: &DashboardState,
    scope: &Scope,
    tier: &str,
    wanted: &str,
) -> ApiResult<Listed> {
    let tier = Some(tier.to_owned());
    let mut filter = PatternFilter { tier, after: None, count_max: PATTERNS_AT_ONCE };
    let mut rows = Vec::new();
    loop {
        let page = dashboard.runtime.store.patterns(scope, &filter).await?;
        let is_last = page.len() < PATTERNS_AT_ONCE as usize;
        let last = page.last();
        filter.after = last.map(|row| (row.tier.clone(), row.pattern_id.clone(), row.org.clone()));
        rows.extend(page.into_iter().filter(|row| wanted.is_empty() || has(row, wanted)));
        if is_last || rows.len() > PATTERNS_SHOWN {
            let is_all = rows.len() <= PATTERNS_SHOWN;
            rows.truncate(PATTERNS_SHOWN);
            return Ok(Listed { rows, is_all });
        }
    }
}

/// Returns `true` if a pattern contains the words, ignoring case.
fn has(row: &PatternRow, words: &str) -> bool {
    let words = words.to_lowercase();
    let fields = row.fields.values().filter_map(Value::as_str);
    let own = [row.pattern_id.as_str(), row.context.as_str()].into_iter();
    fields
        .chain(own)
        .chain(row.failure_type.as_deref())
        .any(|it| it.to_lowercase().contains(&words))
}

fn text<'a>(row: &'a PatternRow, field: &str) -> &'a str {
    row.fields.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn title(row: &PatternRow) -> String {
    let mut filled = texts(&row.tier).iter().map(|(field, _)| text(row, field));
    let first = filled.find(|text| !text.is_empty()).unwrap_or(&row.context);
    line(if first.is_empty() { &row.pattern_id } else { first }, 110)
}

fn address(row: &PatternRow) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("tier", &row.tier).append_pair("id", &row.pattern_id);
    query.append_pair("org", &row.org);
    format!("/ui/pattern?{}", query.finish())
}

fn table(rows: &[PatternRow]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Patterns" { table.cards {
            thead { tr { th { "pattern" } th { "against" } th.right { "used" } th.right { "last" } } }
            tbody { @for row in rows {
                tr {
                    td.what { a href=(address(row)) { (EscapedText(&title(row), 111)) }
                        @if !row.org.is_empty() { div.soft { (name(&row.org)) } } }
                    td { @if let Some(kind) = &row.failure_type { span.mark { (name(&line(kind, 40))) } } }
                    td.right data-name="used" { (grouped(row.uses)) }
                    td.right.soft { @if let Some(at) = row.used_ms { (format_day(day_of(at))) } @else { "never" } }
                }
            } }
        } }
    }
}

/// Renders the form of a pattern with the runs that used it; without an id, the form of a new one.
async fn one(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    draw_one(&dashboard, &visitor, &query).await.unwrap_or_else(layout::problem)
}

async fn draw_one(
    dashboard: &DashboardState,
    visitor: &Visitor,
    query: &str,
) -> ApiResult<Response> {
    let asked = |name: &str| field(query, name).unwrap_or_default();
    let (tier, id, org) = (asked("tier"), asked("id"), asked("org"));
    if !TIERS.iter().any(|(known, _)| *known == tier) {
        return Err(ApiError::NotFound("there are the tiers E1, E2 and E3"));
    }
    if id.is_empty() {
        let new = PatternRow { tier: tier.clone(), ..PatternRow::default() };
        let body = html! { (trail()) h1 { "New " (tier.to_uppercase()) " pattern" } (form(visitor, &new)) };
        return Ok(navigation::page(visitor, HERE, "New pattern", &body));
    }
    dashboard.runtime.patterns.flush_uses().await;
    let scope = visitor.caller.scope(None, None);
    let row = dashboard.runtime.store.pattern(&org, &tier, &id).await?;
    let is_seen = |row: &PatternRow| {
        row.org.is_empty() && tier != "e1" || scope.org.as_ref().is_none_or(|org| row.org == *org)
    };
    let row = row.filter(is_seen).ok_or(ApiError::NotFound("there is no such pattern"))?;
    let row = &row;
    let pattern = format!("{tier}:{id}");
    let filter =
        RunFilter { pattern: Some(pattern.clone()), count_max: RUNS_SHOWN, ..RunFilter::default() };
    let used_in = dashboard.runtime.store.runs(&scope, &filter).await?;
    let body = html! {
        (trail())
        h1 { (EscapedText(&title(row), 111)) }
        p.kicker { (tier.to_uppercase()) " · " (name(&row.pattern_id)) @if !row.org.is_empty() { " · " (name(&row.org)) } }
        section {
            h2 { "Where it was used" }
            p { "Shown " (counted(usize::try_from(row.uses).unwrap_or(usize::MAX), "time"))
                @if let Some(at) = row.used_ms { ", last on " (format_day(day_of(at))) } "." }
            @if !used_in.is_empty() {
                div.scroll tabindex="0" role="group" aria-label="Runs that used it" { (runs::table(&used_in, now_ms())) }
                p.next { a href=(all_runs(&pattern)) { "All runs in which it was shown" } }
            }
        }
        section { h2 { "Words" } @if may_change(visitor, &tier) { (form(visitor, row)) (deleting(visitor, row)) } @else { (reading(row)) } }
    };
    Ok(navigation::page(visitor, HERE, &title(row), &body))
}

fn trail() -> Markup {
    html! { nav.trail aria-label="Where this is" { a href=(HERE) { "Patterns" } } }
}

fn all_runs(pattern: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("pattern", pattern);
    format!("/?{}", query.finish())
}

fn reading(row: &PatternRow) -> Markup {
    html! {
        @for (field, label) in texts(&row.tier) {
            @if !text(row, field).is_empty() { h3 { (label) } p { (EscapedText(text(row, field), TEXT_CHARS_MAX)) } }
        }
    }
}

fn deleting(visitor: &Visitor, row: &PatternRow) -> Markup {
    html! {
        details.danger { summary { "Delete this pattern" }
            form method="post" action={ (HERE) "/delete" } {
                (visitor.token())
                (hidden(row))
                p.soft { "It is not shown to any agent any more. Runs keep what they were told." }
                button { "Delete it" }
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
                label { (label) textarea name=(field) maxlength=(TEXT_CHARS_MAX) { (editable(text(row, field))) } }
            }
            label { "Compared with a run's situation, one a line" textarea name="context" { (editable(&row.context)) } }
            label { "Failure type" input name="failure_type" value=(editable(row.failure_type.as_deref().unwrap_or_default())); }
            div.row { button.main { "Save" } a href=(HERE) { "Cancel" } }
        }
    }
}

/// Adds a pattern, or changes the one with the id in the form.
async fn save(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    match put(&dashboard, &visitor, &form).await {
        Ok(()) => to(HERE),
        Err(error) => layout::problem(error),
    }
}

async fn put(dashboard: &DashboardState, visitor: &Visitor, form: &Form) -> ApiResult<()> {
    visitor.check(form)?;
    let id = form.get("id");
    let pattern = pattern_id(form)?;
    let fields = texts(form.get("tier"))
        .iter()
        .map(|(field, _)| ((*field).to_owned(), Value::from(form.get(field))))
        .collect();
    let attributes = PatternAttributes {
        failure_type: Some(form.get("failure_type").to_owned()),
        context: Some(form.get("context").to_owned()),
        ..PatternAttributes::default()
    };
    let library = &dashboard.runtime.pattern_library;
    if id.is_empty() {
        let (tier, org) = (pattern.tier, pattern.org.map(str::to_owned));
        let new = NewPattern { tier, pattern_id: None, fields, attributes, org };
        library.add(&visitor.caller, new).await?;
    } else {
        library.change(&visitor.caller, pattern, fields, attributes).await?;
    }
    Ok(())
}

async fn delete(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    let deleted = async {
        visitor.check(&form)?;
        let pattern = pattern_id(&form)?;
        Ok(dashboard.runtime.pattern_library.delete(&visitor.caller, pattern).await?)
    };
    match deleted.await {
        Ok(()) => to(HERE),
        Err(error) => layout::problem(error),
    }
}

/// Returns the pattern id of a form.
fn pattern_id(form: &Form) -> ApiResult<PatternId<'_>> {
    let tier = Tier::from_name(form.get("tier"));
    let tier = tier.ok_or(ApiError::NotFound("there is no such tier"))?;
    Ok(PatternId { tier, id: form.get("id"), org: Some(form.get("org")) })
}
