//! Health of the runs: share of clean runs, fired monitors, and cost.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use rb_engine::monitors::find;
use rb_engine::policy::Policy;
use rb_store::{DayHealth, Health};

use crate::DashboardState;
use crate::form::field;
use crate::layout;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_http::error::ApiResult;
use rb_runtime::clock::{day_of, now_ms};
use rb_view::bar;
use rb_view::charts::{DailyBars, real};
use rb_view::text::{dollars, grouped, name};

pub(crate) const PAGE: Page = Page { name: "Health", path: HERE, operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new().route(HERE, get(page))
}

const HERE: &str = "/ui/health";
const DAY_MS: i64 = 86_400_000;
/// Selectable periods in days.
const CHOICES: [u16; 3] = [7, 30, 90];
const DAYS_DEFAULT: u16 = 30;

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = field(&query.unwrap_or_default(), "days").and_then(|days| days.parse().ok());
    let days = asked.filter(|days| CHOICES.contains(days)).unwrap_or(DAYS_DEFAULT);
    draw(&dashboard, &visitor, days).await.unwrap_or_else(layout::problem)
}

async fn draw(dashboard: &DashboardState, visitor: &Visitor, days: u16) -> ApiResult<Response> {
    let scope = visitor.caller.scope(None, None);
    let first_day = day_of(now_ms()) - i64::from(days) + 1;
    let health = dashboard.runtime.store.health(&scope, first_day * DAY_MS).await?;
    let body = html! {
        div.title-row {
            h1 { "Health" }
            nav.choices aria-label="Time" {
                @for choice in CHOICES {
                    a href={ (HERE) "?days=" (choice) } aria-current=[(choice == days).then_some("true")] { (choice) " days" }
                }
            }
        }
        @if health.runs == 0 { p.note { "No run began in the last " (days) " days." } }
        @else {
            (facts(&health))
            section { h2 { "Day by day" } (charts(&health, first_day, days)) }
            section { h2 { "What fires" } (monitors(&health)) }
        }
    };
    Ok(navigation::page(visitor, HERE, "Health", &body))
}

fn facts(health: &Health) -> Markup {
    let percent = |part: u64, of: u64| format!("{:.0} %", 100.0 * real(part) / real(of.max(1)));
    let mean = health.cost_usd / real(health.runs.max(1));
    html! {
        dl.facts.tiles {
            div { dt { "runs" } dd { (grouped(health.runs)) } }
            div { dt { "clean runs" } dd { (percent(health.clean_runs, health.runs)) } }
            div { dt { "succeeded" } dd { (percent(health.success_runs, health.runs)) } }
            div { dt { "a monitor fired in" } dd { (percent(health.fired_runs, health.runs)) } }
            div { dt { "steps" } dd { (grouped(health.steps)) } }
            div { dt { "steps in danger" } dd { (percent(health.danger_steps, health.steps)) } }
            div { dt { "tokens" } dd { (grouped(health.tokens.total)) } }
            div { dt { "cost" } dd { (dollars(health.cost_usd)) span.soft { " " (dollars(mean)) " a run" } } }
        }
    }
}

fn charts(health: &Health, first_day: i64, days: u16) -> Markup {
    let of_day = |read: &dyn Fn(&DayHealth) -> Option<f64>| -> Vec<Option<f64>> {
        let day = |place| health.by_day.get(&(first_day + i64::from(place))).and_then(read);
        (0..days).map(day).collect()
    };
    let highest = |values: &[Option<f64>]| values.iter().flatten().copied().fold(0.0, f64::max);
    let (costs, runs) = (of_day(&|day| Some(day.cost_usd)), of_day(&|day| Some(real(day.runs))));
    let clean = of_day(&|day| (day.runs > 0).then(|| real(day.clean_runs) / real(day.runs)));
    let whole = |value: f64| format!("{value:.0}");
    let percent = |value: f64| format!("{:.0} %", 100.0 * value);
    html! {
        div.charts {
            (DailyBars { what: "cost", first_day, max: highest(&costs), values: costs, class: "bar warm", format: &dollars }.render())
            (DailyBars { what: "share of clean runs", first_day, max: 1.0, values: clean, class: "bar calm", format: &percent }.render())
            (DailyBars { what: "runs", first_day, max: highest(&runs), values: runs, class: "bar", format: &whole }.render())
        }
    }
}

fn monitors(health: &Health) -> Markup {
    let policy = Policy::default();
    let (signals, mut rows): (Vec<_>, Vec<_>) =
        health.by_monitor.iter().partition(|(monitor, _)| policy.is_quiet(monitor));
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.fired, counts.danger)));
    let signals: Vec<_> = signals.into_iter().filter(|(_, counts)| counts.danger > 0).collect();
    let most = rows.first().map_or(1, |(_, counts)| counts.fired.max(1));
    let address = |monitor: &str| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("fired", monitor);
        format!("/?{}", query.finish())
    };
    html! {
        div.scroll tabindex="0" role="group" aria-label="What fires" { table {
            thead { tr { th { "monitor" } th { "fired on steps" } th.right { "worth a look" } th.right { "danger" } th { "what it sees" } } }
            tbody { @for (monitor, counts) in rows {
                tr {
                    td { a href=(address(monitor)) { (name(monitor)) } }
                    td { (bar(real(counts.fired) / real(most), "fill-hot", &grouped(counts.fired))) }
                    td.right { (grouped(counts.warn)) }
                    td.right { (grouped(counts.danger)) }
                    td.soft { (find(monitor).map_or("", |spec| spec.summary)) }
                }
            } }
        } }
        @if !signals.is_empty() {
            p.soft { "Signals (recorded, without advice): "
                @for (at, (monitor, counts)) in signals.iter().enumerate() {
                    @if at > 0 { ", " } (name(monitor)) " on " (grouped(counts.danger)) " steps"
                } "." }
        }
    }
}
