//! Token counts and models as clients report them with a step.

use rb_store::Tokens;
use serde_json::{Map, Value};

/// Maximum of a reported count; larger ones would overflow sums.
const MAX_TOKENS: u64 = 1_000_000_000_000;

/// Reported token counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReportedTokens {
    pub(super) total: Option<u64>,
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

impl ReportedTokens {
    /// Converts to stored counts, where the input includes the tokens read from and written to the cache. An input
    /// smaller than those was counted without them.
    pub(super) fn tokens(self) -> Tokens {
        let known = |count: Option<u64>| count.unwrap_or_default().min(MAX_TOKENS);
        let (cache_read, cache_write) = (known(self.cache_read), known(self.cache_write));
        let mut input = known(self.input);
        if input < cache_read + cache_write {
            input += cache_read + cache_write;
        }
        let output = known(self.output);
        let total = self.total.map_or(input + output, |total| total.min(MAX_TOKENS));
        let total = if total == 0 { input + output } else { total };
        Tokens { total, input, output, cache_read, cache_write }
    }
}

/// Model of a step: as named, or by its metadata.
pub(super) fn reported_model(
    step_model: Option<String>,
    metadata: Option<&Map<String, Value>>,
) -> Option<String> {
    step_model.filter(|model| !model.is_empty()).or_else(|| {
        let model = metadata?.get("model_id")?.as_str()?;
        Some(model.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_counts_are_normalised() {
        let check = |total, input, output, cache_read| {
            let reported = ReportedTokens {
                total: Some(total),
                input: Some(input),
                output: Some(output),
                cache_read: Some(cache_read),
                cache_write: None,
            };
            let tokens = reported.tokens();
            (tokens.total, tokens.input, tokens.output, tokens.cache_read)
        };
        assert_eq!(check(110, 100, 10, 40), (110, 100, 10, 40));
        assert_eq!(check(15, 5, 10, 40), (15, 45, 10, 40), "counted without the cache");
        assert_eq!(check(0, 5, 10, 0), (15, 5, 10, 0));
        assert_eq!(check(u64::MAX, 0, 0, 0).0, MAX_TOKENS);
        assert_eq!(ReportedTokens::default().tokens(), Tokens::default());
    }

    #[test]
    fn the_model_of_a_step_precedes_that_of_its_metadata() {
        let metadata = json!({"model_id": "from-metadata"});
        let metadata = metadata.as_object();
        for (named, metadata, expected) in [
            (Some("own"), metadata, Some("own")),
            (Some(""), metadata, Some("from-metadata")),
            (None, metadata, Some("from-metadata")),
            (None, None, None),
        ] {
            let model = reported_model(named.map(str::to_owned), metadata);
            assert_eq!(model.as_deref(), expected);
        }
    }
}
