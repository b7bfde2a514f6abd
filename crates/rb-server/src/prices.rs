//! What tokens cost: a maintained table of list prices, with the operator's own laid on top.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};
use rb_store::Tokens;
use serde::Deserialize;

use crate::clock::now_ms;

/// The operator's price of a model, in dollars for a million tokens.
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
    /// What the list says of models that are called now: to find one in it takes as long as to judge a third of a step.
    found: Mutex<HashMap<String, Arc<Found>>>,
}

/// Some prices change with the time of the day: what was found holds for so long.
const HOLDS_FOR_MS: i64 = 60_000;
/// When there are more models, all are found anew.
const FOUND_MAX: usize = 256;
const MILLION: u64 = 1_000_000;
/// From these lengths of a call on, lists ask for more a token.
const DEARER_FROM: [u64; 4] = [MILLION, 200_000, 128_000, 32_000];

/// What the list says of a model.
struct Found {
    at_ms: i64,
    /// The name under which it is listed; a model that is not costs nothing.
    name: Option<String>,
    price: Price,
    /// The price of calls with at most so much input; longer ones are looked up each by itself.
    input_max: u64,
}

impl Prices {
    /// The operator's own prices, before the listed ones.
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self { own, listed: Calculator::bundled(), found: Mutex::default() }
    }

    /// The cost of a call at the time it was made. Tokens of input include those read from and written to the
    /// cache; where only a total is known, it is taken as input. A model without a price costs nothing.
    pub(crate) fn cost_usd(&self, model: &str, tokens: &Tokens, at_ms: i64) -> f64 {
        let known = tokens.input + tokens.output > 0;
        let input = if known { tokens.input } else { tokens.total };
        let tokens = Tokens { input, ..*tokens };
        if input + tokens.output == 0 {
            return 0.0;
        }
        if let Some(price) = self.own.get(model) {
            return price.cost_usd(&tokens);
        }
        let now_ms = now_ms();
        if now_ms.saturating_sub(at_ms).saturating_abs() > HOLDS_FOR_MS {
            let listed = names(model).find_map(|name| self.listed_usd(name, &tokens, at_ms));
            return listed.unwrap_or(0.0);
        }
        let found = self.found(model, now_ms);
        match &found.name {
            None => 0.0,
            Some(_) if input <= found.input_max => found.price.cost_usd(&tokens),
            Some(name) => self.listed_usd(name, &tokens, at_ms).unwrap_or(0.0),
        }
    }

    fn found(&self, model: &str, now_ms: i64) -> Arc<Found> {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |found: &&Arc<Found>| now_ms.saturating_sub(found.at_ms) < HOLDS_FOR_MS;
        if let Some(found) = all.get(model).filter(is_fresh) {
            return Arc::clone(found);
        }
        let found = Arc::new(self.find(model, now_ms));
        if all.len() >= FOUND_MAX {
            all.clear();
        }
        all.insert(model.to_owned(), Arc::clone(&found));
        found
    }

    fn find(&self, model: &str, at_ms: i64) -> Found {
        let of = |name| Some((name, self.price_at(name, 1_000, at_ms)?));
        let Some((name, price)) = names(model).find_map(of) else {
            let price = Price { input: 0.0, output: 0.0, cache_read: None, cache_write: None };
            return Found { at_ms, name: None, price, input_max: 0 };
        };
        let is_same = |input: &u64| {
            self.price_at(name, *input, at_ms).is_some_and(|other| price.is_about(&other))
        };
        let input_max = DEARER_FROM.into_iter().find(is_same).unwrap_or(0);
        Found { at_ms, name: Some(name.to_owned()), price, input_max }
    }

    /// What the list asks for a million tokens of each kind in a call with so much input.
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

    /// What the list says of one call; `None` where it does not know the model.
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

/// The names under which a model may be listed: `provider:model` and `provider/model` are the same model as `model`.
fn names(model: &str) -> impl Iterator<Item = &str> {
    [model, model.rsplit([':', '/']).next().unwrap_or(model)].into_iter()
}

impl Price {
    /// The same but for the last digits.
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

/// Counts of tokens are far below the numbers a float cannot hold.
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
    fn the_operators_price_wins_and_cached_tokens_are_cheaper() {
        let own = Price { input: 2.0, output: 10.0, cache_read: None, cache_write: None };
        let prices = Prices::new(BTreeMap::from([("mine".to_owned(), own)]));
        let million = 1_000_000;
        let cases = [
            ("mine", tokens(million, 0, 0), 2.0),
            ("mine", tokens(million, 0, million), 0.2),
            ("mine", tokens(0, million, 0), 10.0),
            ("mine", Tokens { total: million, ..Tokens::default() }, 2.0),
            ("nobody's-model", tokens(million, million, 0), 0.0),
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
    fn calls_of_now_cost_what_the_list_says_of_them_one_by_one() {
        let prices = Prices::new(BTreeMap::new());
        let now = now_ms();
        for model in [
            "gpt-4o",
            "claude-sonnet-4-5",
            "anthropic/claude-opus-4-1",
            "gemini-2.5-pro",
            "deepseek-chat",
            "nobody's-model",
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
    fn few_models_are_remembered() {
        let prices = Prices::new(BTreeMap::new());
        for at in 0..2 * FOUND_MAX {
            prices.cost_usd(&format!("model-{at}"), &tokens(1, 1, 0), now_ms());
        }
        assert!(prices.found.lock().unwrap().len() <= FOUND_MAX);
    }
}
