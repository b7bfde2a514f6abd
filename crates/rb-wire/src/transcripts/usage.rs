//! Reader of token counts with any of the known field names.

use super::lazy_json::Json;
use crate::model::RecordedUsage;

/// Reads an object of token counts.
pub(super) fn tokens(json: Json<'_>) -> RecordedUsage {
    let mut usage = RecordedUsage::default();
    // Anthropic reports cached tokens separately; other providers include them in the input tokens.
    let (mut apart, mut is_apart, mut thoughts) = (0, false, None);
    for (key, value) in json.entries() {
        let first = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.count());
        match key {
            "input_tokens" => {
                usage.input_tokens = value.count();
                is_apart = true;
            }
            "prompt_tokens" | "prompt_token_count" | "input" | "promptTokens" => {
                usage.input_tokens = value.count();
            }
            // Gemini CLI alone reports reasoning tokens separately.
            "thoughts" => thoughts = value.count(),
            "output_tokens"
            | "completion_tokens"
            | "candidates_token_count"
            | "output"
            | "completionTokens" => {
                usage.output_tokens = value.count();
            }
            "cache_read_input_tokens" => {
                usage.cache_read_tokens = value.count();
                apart += value.count().unwrap_or(0);
            }
            "cache_creation_input_tokens" => {
                usage.cache_write_tokens = value.count();
                apart += value.count().unwrap_or(0);
            }
            "cached_input_tokens" | "cached_tokens" | "cached" | "cache_read_tokens" => {
                usage.cache_read_tokens = value.count();
            }
            "cache_write_tokens" => usage.cache_write_tokens = value.count(),
            "prompt_tokens_details" | "input_tokens_details" | "input_token_details" => {
                usage.cache_read_tokens =
                    first(&["cached_tokens", "cache_read"]).or(usage.cache_read_tokens);
                usage.cache_write_tokens = first(&["cache_creation"]).or(usage.cache_write_tokens);
            }
            _ => {}
        }
    }
    let apart = if is_apart { apart } else { 0 };
    usage.input_tokens = usage.input_tokens.map(|input| input.saturating_add(apart));
    let thoughts = thoughts.unwrap_or(0);
    usage.output_tokens = usage.output_tokens.map(|output| output.saturating_add(thoughts));
    usage
}
