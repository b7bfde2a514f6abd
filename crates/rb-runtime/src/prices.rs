//! Token prices: a maintained table of list prices, overridden by the operator's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};
use rb_store::Tokens;
use serde::Deserialize;

use crate::cache::TtlCache;
use crate::clock::now_ms;

/// Price of a model in dollars per million tokens, set by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// A tenth of `input` if left out.
    pub cache_read: Option<f64>,
    /// One and a quarter of `input` if left out.
    pub cache_write: Option<f64>,
}

/// Prices by model.
pub struct Prices {
    own: BTreeMap<String, Price>,
    listed: &'static Calculator,
    /// List prices of the models called now: a lookup in the list costs a third of the assessment of a step.
    current: TtlCache<String, Arc<ListPrice>>,
}

/// Short, because some prices change with the time of day.
const CACHE_TTL: Duration = Duration::from_mins(1);
const CACHE_TTL_MS: i64 = 60_000;
/// Models.
const CACHE_CAPACITY: usize = 256;
const MILLION: u64 = 1_000_000;
/// Input lengths above which some lists charge a higher price per token.
const PRICE_STEPS: [u64; 4] = [MILLION, 200_000, 128_000, 32_000];

/// List price of a model.
struct ListPrice {
    /// Name in the list; a model without one costs nothing.
    name: Option<String>,
    price: Price,
    /// Maximum input of a call at this price; longer calls are looked up one by one.
    max_input: u64,
}

impl Prices {
    /// `own` overrides the list.
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self {
            own,
            listed: Calculator::bundled(),
            current: TtlCache::new(CACHE_CAPACITY, CACHE_TTL),
        }
    }

    /// Cost of a call at the time it was made. Input tokens include those read from and written to the cache; a bare
    /// total counts as input. A model without a price costs nothing.
    pub fn cost_usd(&self, model: &str, tokens: &Tokens, at_ms: i64) -> f64 {
        let known = tokens.input + tokens.output > 0;
        let input = if known { tokens.input } else { tokens.total };
        let tokens = Tokens { input, ..*tokens };
        if input + tokens.output == 0 {
            return 0.0;
        }
        if let Some(price) = self.own.get(model) {
            return price.cost_usd(&tokens);
        }
        if now_ms().saturating_sub(at_ms).saturating_abs() > CACHE_TTL_MS {
            let listed = names(model).find_map(|name| self.listed_usd(name, &tokens, at_ms));
            return listed.unwrap_or(0.0);
        }
        let current = self.current(model);
        match &current.name {
            None => 0.0,
            Some(_) if input <= current.max_input => current.price.cost_usd(&tokens),
            Some(name) => self.listed_usd(name, &tokens, at_ms).unwrap_or(0.0),
        }
    }

    fn current(&self, model: &str) -> Arc<ListPrice> {
        if let Some(price) = self.current.get(model) {
            return price;
        }
        let price = Arc::new(self.find(model, now_ms()));
        self.current.insert(model.to_owned(), Arc::clone(&price));
        price
    }

    fn find(&self, model: &str, at_ms: i64) -> ListPrice {
        let of = |name| Some((name, self.price_at(name, 1_000, at_ms)?));
        let Some((name, price)) = names(model).find_map(of) else {
            let price = Price { input: 0.0, output: 0.0, cache_read: None, cache_write: None };
            return ListPrice { name: None, price, max_input: 0 };
        };
        let is_same = |input: &u64| {
            self.price_at(name, *input, at_ms).is_some_and(|other| price.is_about(&other))
        };
        let max_input = PRICE_STEPS.into_iter().find(is_same).unwrap_or(0);
        ListPrice { name: Some(name.to_owned()), price, max_input }
    }

    /// List price per million tokens of each kind, for a call with this much input.
    fn price_at(&self, name: &str, input: u64, at_ms: i64) -> Option<Price> {
        let call = Tokens { input, ..Tokens::default() };
        let usd = |tokens| self.listed_usd(name, &tokens, at_ms);
        let fresh = usd(call)?;
        let a_million = as_f64(MILLION) / as_f64(input);
        Some(Price {
            input: fresh * a_million,
            output: usd(Tokens { output: MILLION, ..call })? - fresh,
            cache_read: Some(usd(Tokens { cache_read: input, ..call })? * a_million),
            cache_write: Some(usd(Tokens { cache_write: input, ..call })? * a_million),
        })
    }

    /// Cost of one call by the list; `None` for an unknown model.
    fn listed_usd(&self, name: &str, tokens: &Tokens, at_ms: i64) -> Option<f64> {
        let usage = Usage::from([
            (UsageKey::INPUT_TOKENS, as_f64(tokens.input)),
            (UsageKey::OUTPUT_TOKENS, as_f64(tokens.output)),
            (UsageKey::CACHE_READ_TOKENS, as_f64(tokens.cache_read.min(tokens.input))),
            (UsageKey::CACHE_WRITE_TOKENS, as_f64(tokens.cache_write)),
        ]);
        let at = u64::try_from(at_ms)
            .map_or(SystemTime::now(), |ms| UNIX_EPOCH + Duration::from_millis(ms));
        let price = self.listed.calculate(&PriceRequest::new(name, &usage).with_timestamp(at));
        price.ok().map(|price| price.total_price)
    }
}

/// Names under which a model may be listed: `provider:model` and `provider/model` are also listed as `model`.
fn names(model: &str) -> impl Iterator<Item = &str> {
    [model, model.rsplit([':', '/']).next().unwrap_or(model)].into_iter()
}

impl Price {
    /// Compares with a relative tolerance of 1e-9.
    fn is_about(&self, other: &Self) -> bool {
        let about = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        let cached =
            |price: &Self| [price.cache_read, price.cache_write].map(Option::unwrap_or_default);
        about(self.input, other.input)
            && about(self.output, other.output)
            && cached(self).into_iter().zip(cached(other)).all(|(a, b)| about(a, b))
    }

    fn cost_usd(&self, tokens: &Tokens) -> f64 {
        let cached = tokens.cache_read.min(tokens.input);
        let written = tokens.cache_write.min(tokens.input - cached);
        let fresh = tokens.input - cached - written;
        let millionths = self.input * as_f64(fresh)
            + self.cache_read.unwrap_or(self.input * 0.1) * as_f64(cached)
            + self.cache_write.unwrap_or(self.input * 1.25) * as_f64(written)
            + self.output * as_f64(tokens.output);
        millionths / 1e6
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are small")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, output: u64, cache_read: u64) -> Tokens {
        Tokens { total: input + output, input, output, cache_read, cache_write: 0 }
    }

    #[test]
    fn own_prices_override_the_list_and_cached_tokens_are_cheaper() {
        let own = Price { input: 2.0, output: 10.0, cache_read: None, cache_write: None };
        let prices = Prices::new(BTreeMap::from([("mine".to_owned(), own)]));
        let million = 1_000_000;
        let cases = [
            ("mine", tokens(million, 0, 0), 2.0),
            ("mine", tokens(million, 0, million), 0.2),
            ("mine", tokens(0, million, 0), 10.0),
            ("mine", Tokens { total: million, ..Tokens::default() }, 2.0),
            ("unknown-model", tokens(million, million, 0), 0.0),
        ];
        for (model, tokens, usd) in cases {
            let cost = prices.cost_usd(model, &tokens, 1_790_000_000_000);
            assert!((cost - usd).abs() < 1e-9, "{model} {tokens:?}: {cost}");
        }
    }

    #[test]
    fn listed_models_have_a_price_under_all_their_names() {
        let prices = Prices::new(BTreeMap::new());
        let used = tokens(1_000_000, 100_000, 900_000);
        for model in ["gpt-4o", "openai:gpt-4o", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"]
        {
            let all_fresh = Tokens { cache_read: 0, ..used };
            let (cached, fresh) = (
                prices.cost_usd(model, &used, 1_790_000_000_000),
                prices.cost_usd(model, &all_fresh, 1_790_000_000_000),
            );
            assert!(0.0 < cached && cached < fresh, "{model}: {cached} {fresh}");
        }
    }

    #[test]
    fn cached_prices_equal_list_prices() {
        let prices = Prices::new(BTreeMap::new());
        let now = now_ms();
        for model in [
            "gpt-4o",
            "claude-sonnet-4-5",
            "anthropic/claude-opus-4-1",
            "gemini-2.5-pro",
            "deepseek-chat",
            "unknown-model",
            "",
        ] {
            for input in [0, 1, 900, 31_000, 33_000, 127_999, 150_000, 199_999, 250_000, 3_000_000]
            {
                for (cache_read, cache_write) in [(0, 0), (input / 2, 0), (input / 2, input / 4)] {
                    let used = Tokens { cache_write, ..tokens(input, 700, cache_read) };
                    let listed = names(model).find_map(|name| prices.listed_usd(name, &used, now));
                    let (listed, cost) =
                        (listed.unwrap_or(0.0), prices.cost_usd(model, &used, now));
                    assert!((cost - listed).abs() < 1e-9, "{model} {used:?}: {cost} {listed}");
                }
            }
        }
    }

    #[test]
    fn the_number_of_cached_models_is_bounded() {
        let prices = Prices::new(BTreeMap::new());
        for at in 0..2 * CACHE_CAPACITY {
            prices.cost_usd(&format!("model-{at}"), &tokens(1, 1, 0), now_ms());
        }
        assert!(prices.current.len() <= CACHE_CAPACITY);
    }
}
