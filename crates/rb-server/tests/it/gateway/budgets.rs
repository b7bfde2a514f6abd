//! Budgets of runs, keys and days, in tokens and dollars, across restarts.

use std::collections::BTreeMap;

use super::Stage;
use super::dialects::{DIALECTS, Dialect, obliging};
use rb_gateway::BudgetConfig;
use rb_runtime::prices::Price;
use rb_server::config::RawConfig;

const WRAP_UP: &str = "It may be best to wrap up";

/// Every call uses 1,100 tokens and costs 20 cents.
fn config(budget: BudgetConfig) -> RawConfig {
    let price = Price { input: 100.0, output: 1_000.0, cache_read: None, cache_write: None };
    let mut raw =
        RawConfig { prices: BTreeMap::from([("m".to_owned(), price)]), ..super::patient() };
    raw.gateway.budget = budget;
    raw
}

/// Five calls fit into each of these, and four are four fifths.
fn limits() -> [(BudgetConfig, &'static str, &'static str); 6] {
    let none = BudgetConfig::default();
    let (tokens, usd) = (Some(5_500), Some(1.0));
    [
        (
            BudgetConfig { run_tokens: tokens, ..none },
            "4400 of the 5500 tokens of this run",
            "the token budget of this run is used up: 5500 of 5500",
        ),
        (
            BudgetConfig { run_usd: usd, ..none },
            "$0.80 of the $1.00 of this run",
            "the budget of this run is used up: $1.00 of $1.00",
        ),
        (
            BudgetConfig { key_day_tokens: tokens, ..none },
            "tokens of this key for today",
            "the token budget of this key for today is used up",
        ),
        (
            BudgetConfig { key_day_usd: usd, ..none },
            "$1.00 of this key for today",
            "the budget of this key for today is used up",
        ),
        (
            BudgetConfig { day_tokens: tokens, ..none },
            "tokens of all keys for today",
            "the token budget of all keys for today is used up",
        ),
        (
            BudgetConfig { day_usd: usd, ..none },
            "$1.00 of all keys for today",
            "the budget of all keys for today is used up",
        ),
    ]
}

#[tokio::test]
async fn a_limit_asks_to_wrap_up_and_then_ends_it_in_the_providers_shape() {
    for (number, (budget, near, over)) in limits().into_iter().enumerate() {
        let dialect = DIALECTS[number % DIALECTS.len()];
        for restart_before in [None, Some(4), Some(5)] {
            let mut stage = Stage::with(config(budget), obliging).await;
            let named = [("x-reasonblocks-run-id", "r")];
            for turns in 0..7 {
                if restart_before == Some(turns) {
                    stage.restart().await;
                }
                let body = dialect.request("m", &dialect.history(turns));
                let got = stage.post(dialect.path(), &named, &body).await;
                assert!(stage.app.gateway.flush().await);
                let seen = stage.upstream.seen();
                let last = seen.last().unwrap().text();
                if turns < 5 {
                    assert_eq!(got.status, 200, "{over}: call {turns} {}", got.text());
                    assert_eq!(last.contains(WRAP_UP), turns == 4, "{over}: call {turns}");
                    assert!(turns < 4 || last.contains(near), "{near}: {last}");
                    continue;
                }
                assert_eq!(seen.len(), 5, "{over}: what is refused is not sent");
                assert_eq!(got.status, 429, "{over}: call {turns}");
                assert_eq!(got.header("x-should-retry"), Some("false"));
                let (json, said) = (got.json(), got.text());
                assert!(said.contains(over), "{over}: {said}");
                let (field, kind) = match dialect {
                    Dialect::Gemini => ("status", "RESOURCE_EXHAUSTED"),
                    Dialect::Anthropic | Dialect::Chat | Dialect::Responses => {
                        ("type", "rate_limit_error")
                    }
                };
                assert_eq!(json["error"][field], kind, "{said}");
                assert_eq!(json["type"] == "error", dialect == Dialect::Anthropic, "{said}");
            }
        }
    }
}

#[tokio::test]
async fn a_limit_of_a_run_is_no_limit_of_another_and_one_of_a_day_is() {
    for (budget, is_shared) in [
        (BudgetConfig { run_usd: Some(0.3), ..BudgetConfig::default() }, false),
        (BudgetConfig { day_usd: Some(0.3), ..BudgetConfig::default() }, true),
    ] {
        let stage = Stage::with(config(budget), obliging).await;
        let dialect = Dialect::Chat;
        for (run, turns, status) in [
            ("a", 0, 200),
            ("a", 1, 200),
            ("a", 2, 429),
            ("b", 0, if is_shared { 429 } else { 200 }),
        ] {
            let body = dialect.request("m", &dialect.history(turns));
            let got = stage.post(dialect.path(), &[("x-reasonblocks-run-id", run)], &body).await;
            assert_eq!(got.status, status, "{run} {turns}: {}", got.text());
            assert!(stage.app.gateway.flush().await);
        }
    }
}

#[tokio::test]
async fn what_was_used_while_the_store_was_away_replaces_nothing() {
    let budget = BudgetConfig { day_usd: Some(1.0), ..BudgetConfig::default() };
    let mut raw = config(budget);
    raw.gateway.decision_timeout = std::time::Duration::from_millis(200);
    let mut stage = Stage::with(raw, obliging).await;
    let dialect = Dialect::Chat;
    let statuses = async |stage: &Stage, calls: usize| {
        let mut statuses = Vec::new();
        for _ in 0..calls {
            let body = dialect.request("m", &dialect.history(1));
            statuses.push(stage.post(dialect.path(), &[], &body).await.status);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        statuses
    };
    assert_eq!(statuses(&stage, 3).await, [200; 3]);
    stage.restart().await;
    stage.store.set_fault(rb_testkit::Fault::Unavailable);
    assert_eq!(statuses(&stage, 1).await, [200], "what is not known does not stop a call");
    stage.store.set_fault(rb_testkit::Fault::None);
    let after = statuses(&stage, 3).await;
    assert_eq!(after.last(), Some(&429), "the calls before the restart still count: {after:?}");
}
