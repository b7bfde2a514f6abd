//! Usage meter: guidance per organisation and month, and its quota.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rb_store::UsageDay;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::body::Query;
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::auth::{Caller, DEFAULT_ORG};
use rb_runtime::clock::{day_of, format_day, now_ms};

/// Maximum number of days in a series.
const DAYS_MAX: u32 = 365;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(meter))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The organisation; a key's own if left out, `default` for the operator.
    #[param(max_length = 256)]
    org_id: Option<String>,
    /// Number of days of the series, which ends today.
    #[serde(default)]
    #[param(default = 0, maximum = 365)]
    days: u32,
}

/// Usage of an organisation.
#[derive(Serialize, ToSchema)]
struct Meter {
    /// Always `self-hosted`.
    plan: &'static str,
    /// Steps on which guidance was given this month (UTC); runs of experiments do not count.
    used: u64,
    /// Quota per month; null without a quota.
    cap: Option<u64>,
    /// The quota is exhausted: patterns are not retrieved.
    over_cap: bool,
    org_id: String,
    /// The month that is counted, as `YYYY-MM`.
    month: String,
    /// One entry a day, oldest first, when `days` is above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<MeterDay>>,
}

/// One day of it.
#[derive(Serialize, ToSchema)]
struct MeterDay {
    /// `YYYY-MM-DD`.
    day: String,
    used: u64,
    steps: u64,
    tokens: u64,
}

/// Returns the usage of this month, and of each day.
#[utoipa::path(get, path = "/billing/meter", tag = "billing", params(Asked), responses(
    (status = 200, body = Meter),
    (status = 403, description = "the key belongs to another organisation", body = Problem),
))]
async fn meter(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(asked): Query<Asked>,
) -> ApiResult<Json<Meter>> {
    if asked.days > DAYS_MAX {
        return Err(unprocessable(&["query", "days"], format!("at most {DAYS_MAX} days")));
    }
    let org_id = org(&caller, asked.org_id.as_deref())?;
    let today = day_of(now_ms());
    let month_began = today - days_into_month(today);
    let series_began = today - i64::from(asked.days) + 1;
    let since = if asked.days > 0 { month_began.min(series_began) } else { month_began };
    let usage = api.runtime.store.usage(&org_id, since).await?;
    let this_month = usage.iter().filter(|day| day.day >= month_began);
    let used = this_month.map(|day| day.interventions).sum();
    let cap = api.intervention_cap;
    Ok(Json(Meter {
        plan: "self-hosted",
        used,
        cap,
        over_cap: cap.is_some_and(|cap| used >= cap),
        org_id,
        month: format_day(today).chars().take(7).collect(),
        series: (asked.days > 0).then(|| series(&usage, series_began, today)),
    }))
}

/// Returns the organisation to report. Another organisation than that of the key is an error.
fn org(caller: &Caller, asked: Option<&str>) -> ApiResult<String> {
    let asked = asked.filter(|asked| !asked.is_empty());
    let org = caller.scope(asked, None).org.unwrap_or_else(|| DEFAULT_ORG.to_owned());
    if asked.is_some_and(|asked| asked != org) {
        return Err(ApiError::Forbidden("this key belongs to another organisation"));
    }
    Ok(org)
}

fn days_into_month(day: i64) -> i64 {
    let time = Timestamp::from_millisecond(day.saturating_mul(86_400_000)).unwrap_or_default();
    i64::from(time.to_zoned(TimeZone::UTC).day()) - 1
}

/// Fills the series with all days, also those without usage.
fn series(usage: &[UsageDay], first: i64, last: i64) -> Vec<MeterDay> {
    let on = |day| usage.iter().find(|used| used.day == day).copied().unwrap_or_default();
    let entry = |day| {
        let UsageDay { interventions: used, steps, tokens, .. } = on(day);
        MeterDay { day: format_day(day), used, steps, tokens }
    };
    (first..=last).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_on_its_first_day() {
        // 1970-01-01, 1970-01-31, 1970-02-01, 2024-02-29
        for (day, into) in [(0, 0), (30, 30), (31, 0), (19_782, 28)] {
            assert_eq!(days_into_month(day), into, "{}", format_day(day));
        }
    }

    #[test]
    fn quiet_days_are_in_the_series() {
        let usage = [UsageDay { day: 2, interventions: 3, steps: 9, tokens: 50 }];
        let days = series(&usage, 1, 3);
        let days: Vec<_> = days.iter().map(|day| (day.day.as_str(), day.used)).collect();
        assert_eq!(days, [("1970-01-02", 0), ("1970-01-03", 3), ("1970-01-04", 0)]);
    }
}
