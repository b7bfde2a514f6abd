//! How the runs fare: clean runs, what fires, what it costs.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use rb_engine::monitors::find;
use rb_store::{Health, UsageDay};

use super::layout;
use super::visitor::Visitor;
use crate::app::Shared;
use crate::auth::ORG_DEFAULT;
use crate::clock::{day_of, iso_day, now_ms};
use crate::error::ApiResult;
use crate::view::bar;
use crate::view::text::{dollars, grouped, name};

const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;

pub(super) async fn page(State(app): State<Shared>, visitor: Visitor) -> Response {
    draw(&app, &visitor).await.unwrap_or_else(layout::problem)
}

async fn draw(app: &Shared, visitor: &Visitor) -> ApiResult<Response> {
    let scope = visitor.caller.scope(None, None);
    let now = now_ms();
    let health = app.store.health(&scope, now - DAYS * DAY_MS).await?;
    let org = scope.org.as_deref().unwrap_or(ORG_DEFAULT);
    let today = day_of(now);
    let usage = app.store.usage(org, today - DAYS + 1).await?;
    let body = html! {
        h1 { "Health" }
        p.lead { "The runs that began in the last " (DAYS) " days." }
        @if health.runs == 0 { p.note { "There was none." } }
        @else {
            (facts(&health))
            section { h2 { "What fires" } (monitors(&health)) }
        }
        @if usage.iter().any(|day| day.tokens > 0 || day.steps > 0) {
            section { h2 { "Day by day, organisation " (name(org)) }
                (days("steps", &usage, today, |day| day.steps))
                (days("tokens", &usage, today, |day| day.tokens))
                (days("guidance", &usage, today, |day| day.interventions)) }
        }
    };
    Ok(layout::page(visitor, "/ui/health", "Health", &body))
}

/// A count as a number to divide by.
fn real(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

fn facts(health: &Health) -> Markup {
    let percent = |part: u64| format!("{:.0} %", 100.0 * real(part) / real(health.runs.max(1)));
    html! {
        dl.facts {
            div { dt { "runs" } dd { (grouped(health.runs)) } }
            div { dt { "steps" } dd { (grouped(health.steps)) } }
            div { dt { "clean runs" } dd { (percent(health.clean_runs)) } }
            div { dt { "a monitor fired in" } dd { (percent(health.fired_runs)) } }
            div { dt { "succeeded" } dd { (percent(health.success_runs)) } }
            div { dt { "tokens" } dd { (grouped(health.tokens.total)) } }
            div { dt { "cost" } dd { (dollars(health.cost_usd)) } }
        }
    }
}

fn monitors(health: &Health) -> Markup {
    let mut rows: Vec<_> = health.by_monitor.iter().collect();
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.fired));
    let most = rows.first().map_or(1, |(_, counts)| counts.fired.max(1));
    html! {
        div.scroll tabindex="0" { table {
            thead { tr { th { "monitor" } th { "fired on steps" } th.right { "worth a look" } th.right { "danger" } th { "what it sees" } } }
            tbody { @for (monitor, counts) in rows {
                tr {
                    td { (name(monitor)) }
                    td { (bar(real(counts.fired) / real(most), "fill-hot", &grouped(counts.fired))) }
                    td.right { (grouped(counts.warn)) }
                    td.right { (grouped(counts.danger)) }
                    td.soft { (find(monitor).map_or("", |spec| spec.summary)) }
                }
            } }
        } }
    }
}

/// A bar a day.
fn days(what: &str, usage: &[UsageDay], today: i64, of: impl Fn(&UsageDay) -> u64) -> Markup {
    let most = usage.iter().map(&of).max().unwrap_or(0);
    let total: u64 = usage.iter().map(&of).sum();
    let bars = (0_u32..30).map(|place| {
        let day = today - DAYS + 1 + i64::from(place);
        let count = usage.iter().find(|used| used.day == day).map_or(0, &of);
        (place, day, count)
    });
    html! {
        p { b { (what) } span.soft { " " (grouped(total)) " in all, at most " (grouped(most)) " a day" } }
        svg.chart viewBox="0 0 600 60" width="600" height="60" role="img" aria-label={ (what) " a day, " (grouped(total)) " in all" } {
            line.rule x1="0" x2="600" y1="59" y2="59" {}
            @for (place, day, count) in bars {
                @let height = (56.0 * real(count) / real(most.max(1))).max(if count > 0 { 1.0 } else { 0.0 });
                g { title { (iso_day(day)) ": " (grouped(count)) }
                    rect.bar x=(place * 20 + 1) y=(format!("{:.1}", 59.0 - height)) width="17" height=(format!("{height:.1}")) {} }
            }
        }
    }
}
