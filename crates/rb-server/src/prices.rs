//! What tokens cost: a maintained table of list prices, with the operator's own laid on top.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};
use rb_store::Tokens;
use serde::Deserialize;

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
}

impl Prices {
    /// The operator's own prices, before the listed ones.
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self { own, listed: Calculator::bundled() }
    }

    /// The cost of a call at the time it was made. Tokens of input include those read from and written to the
    /// cache; where only a total is known, it is taken as input. A model without a price costs nothing.
    pub(crate) fn cost_usd(&self, model: &str, tokens: &Tokens, at_ms: i64) -> f64 {
        let known = tokens.input + tokens.output > 0;
        let input = if known { tokens.input } else { tokens.total };
        let tokens = Tokens { input, ..*tokens };
        if let Some(price) = self.own.get(model) {
            return price.cost_usd(&tokens);
        }
        let usage = Usage::from([
            (UsageKey::INPUT_TOKENS, as_f64(tokens.input)),
            (UsageKey::OUTPUT_TOKENS, as_f64(tokens.output)),
            (UsageKey::CACHE_READ_TOKENS, as_f64(tokens.cache_read.min(tokens.input))),
            (UsageKey::CACHE_WRITE_TOKENS, as_f64(tokens.cache_write)),
        ]);
        let at = u64::try_from(at_ms)
            .map_or(SystemTime::now(), |ms| UNIX_EPOCH + Duration::from_millis(ms));
        // `provider:model` and `provider/model` name the same model as `model`.
        let bare = model.rsplit([':', '/']).next().unwrap_or(model);
        let price = [model, bare].iter().find_map(|name| {
            self.listed.calculate(&PriceRequest::new(name, &usage).with_timestamp(at)).ok()
        });
        price.map_or(0.0, |price| price.total_price)
    }
}

impl Price {
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
}
