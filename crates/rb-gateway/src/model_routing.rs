//! Model routing by run state. Each model has its own prompt cache, so a switch re-reads the conversation at the full
//! price: a run switches only if that pays off, and a limited number of times.

use rb_store::Tokens;
use serde::{Deserialize, Serialize};

use rb_runtime::prices::Prices;

/// Approximate TTL of a provider's prompt cache.
const CACHE_TTL_MS: i64 = 5 * 60 * 1_000;
/// Bounds of the expected number of further calls, which is the number of calls so far.
const EXPECTED_CALLS: (u32, u32) = (1, 20);

/// Models of a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ModelRouter {
    /// Model of the newest call.
    serving: String,
    /// Model that the client requested for it.
    asked: String,
    /// Number of switches.
    switches: u32,
    /// The provider rejected a request with a changed model.
    is_refused: bool,
    calls: u32,
    /// Tokens of the newest call, the prefix of the next one.
    prefix_tokens: u64,
    output_tokens: u64,
    usd: f64,
    at_ms: i64,
}

impl ModelRouter {
    /// Chooses the model for a call from the requested one and the one routed by the state of the run.
    pub(crate) fn choose<'a>(
        &'a self,
        asked: &'a str,
        routed: Option<&'a str>,
        max_switches: u32,
        prices: &Prices,
        now_ms: i64,
    ) -> &'a str {
        if self.is_refused {
            return asked;
        }
        let wanted = routed.unwrap_or(asked);
        // If the client changed the model itself, its cache is cold either way.
        let current = if self.asked == asked { self.serving.as_str() } else { asked };
        if self.serving.is_empty() || wanted == current {
            return wanted;
        }
        if self.switches < max_switches && self.is_worth_switching(current, wanted, prices, now_ms)
        {
            wanted
        } else {
            current
        }
    }

    /// Returns `true` if the expected calls are cheaper with another model, including its cold cache. A more expensive
    /// model is routed to for its quality: the cold cache may cost as much as the run so far.
    fn is_worth_switching(
        &self,
        current: &str,
        wanted: &str,
        prices: &Prices,
        now_ms: i64,
    ) -> bool {
        let cost = |model: &str, cache_read: u64| {
            let (input, output) = (self.prefix_tokens, self.output_tokens);
            let total = input.saturating_add(output);
            let tokens = Tokens { total, input, output, cache_read, cache_write: 0 };
            prices.cost_usd(model, &tokens, now_ms)
        };
        let is_warm = now_ms.saturating_sub(self.at_ms) < CACHE_TTL_MS;
        let stay_now = cost(current, if is_warm { self.prefix_tokens } else { 0 });
        let stay_later = cost(current, self.prefix_tokens);
        let (go_now, go_later) = (cost(wanted, 0), cost(wanted, self.prefix_tokens));
        if stay_later == 0.0 || go_later == 0.0 {
            return true; // prices are unknown
        }
        if go_later >= stay_later {
            return !is_warm || go_now - go_later <= self.usd;
        }
        let later = f64::from(self.calls.clamp(EXPECTED_CALLS.0, EXPECTED_CALLS.1) - 1);
        go_now + later * go_later <= stay_now + later * stay_later
    }

    /// Records that the provider accepted a request for this model.
    pub(crate) fn record_served(&mut self, asked: &str, model: &str) {
        let was = if self.asked == asked { self.serving.as_str() } else { asked };
        if !self.serving.is_empty() && was != model {
            self.switches = self.switches.saturating_add(1);
        }
        model.clone_into(&mut self.serving);
        asked.clone_into(&mut self.asked);
    }

    /// Records the usage of a call.
    pub(crate) fn record_usage(&mut self, tokens: &Tokens, usd: f64, now_ms: i64) {
        self.calls = self.calls.saturating_add(1);
        self.prefix_tokens = tokens.total;
        self.output_tokens = tokens.output;
        self.usd += usd;
        self.at_ms = now_ms;
    }

    /// Stops routing: the provider rejected a changed model and accepted the original.
    pub(crate) fn record_refusal(&mut self) {
        self.is_refused = true;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use rb_runtime::prices::Price;

    fn prices() -> Prices {
        let price =
            |input: f64| Price { input, output: input * 5.0, cache_read: None, cache_write: None };
        Prices::new(BTreeMap::from([
            ("small".to_owned(), price(0.5)),
            ("middle".to_owned(), price(3.0)),
            ("bit-cheaper".to_owned(), price(2.8)),
            ("big".to_owned(), price(15.0)),
        ]))
    }

    /// Run on `middle` with a number of calls, and the tokens of the newest one.
    fn run(calls: u32, prefix: u64, usd_each: f64) -> ModelRouter {
        let mut run = ModelRouter::default();
        for _ in 0..calls {
            run.record_served("middle", "middle");
            let tokens =
                Tokens { total: prefix, input: prefix - 200, output: 200, ..Tokens::default() };
            run.record_usage(&tokens, usd_each, 0);
        }
        run
    }

    #[test]
    fn a_warm_cache_is_left_only_when_it_pays() {
        let minute = 60_000;
        let cases = [
            // calls, prefix, dollars a call, minutes since, model wanted, model chosen
            (0, 0, 0.0, 0, Some("big"), "big"),
            (3, 100_000, 0.05, 1, None, "middle"),
            (1, 100_000, 0.05, 1, Some("small"), "middle"),
            (12, 100_000, 0.05, 1, Some("small"), "small"),
            (12, 100_000, 0.05, 1, Some("bit-cheaper"), "middle"),
            (12, 100_000, 0.05, 9, Some("bit-cheaper"), "bit-cheaper"),
            (3, 1_000, 0.01, 1, Some("big"), "big"),
            (3, 400_000, 0.15, 1, Some("big"), "middle"),
            (3, 400_000, 0.15, 9, Some("big"), "big"),
            (60, 400_000, 0.15, 1, Some("big"), "big"),
            (12, 100_000, 0.05, 1, Some("unpriced"), "unpriced"),
        ];
        for (calls, prefix, usd, minutes, wanted, chosen) in cases {
            let run = run(calls, prefix, usd);
            let model = run.choose("middle", wanted, 4, &prices(), minutes * minute);
            assert_eq!(model, chosen, "{calls} calls, {prefix} tokens, {minutes} min, {wanted:?}");
        }
    }

    #[test]
    fn a_run_is_switched_so_often_and_no_more() {
        let mut run = ModelRouter::default();
        let mut served = Vec::new();
        for call in 0..8 {
            let wanted = if call % 2 == 0 { "unpriced" } else { "other" };
            let model = run.choose("middle", Some(wanted), 3, &prices(), 0).to_owned();
            run.record_served("middle", &model);
            served.push(model);
        }
        let (a, b) = ("unpriced", "other");
        assert_eq!(served, [a, b, a, b, b, b, b, b]);
    }

    #[test]
    fn the_clients_own_choice_is_no_switch_of_ours() {
        let mut run = run(12, 100_000, 0.05);
        assert_eq!(run.choose("big", None, 0, &prices(), 0), "big");
        run.record_served("big", "big");
        assert_eq!(run.switches, 0);
        assert_eq!(run.choose("big", Some("small"), 1, &prices(), 0), "small");
    }

    #[test]
    fn a_refused_model_is_not_tried_again() {
        let mut run = run(1, 1_000, 0.01);
        run.record_refusal();
        assert_eq!(run.choose("middle", Some("unpriced"), 4, &prices(), 0), "middle");
    }
}
