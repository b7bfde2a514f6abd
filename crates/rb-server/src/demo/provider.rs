//! Scripted provider with the Anthropic Messages API. Its model repeats searches until it receives guidance.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::lock;

/// Only used to look up a list price; nothing is sent there.
pub const MODEL: &str = "claude-sonnet-4-5";
/// Number of tool results after which the model gives up.
const RESULTS_MAX: usize = 14;
/// Approximation for English and JSON.
const BYTES_PER_TOKEN: usize = 4;

/// Prefix of guidance from monitors. Standing rules do not change the script.
pub(super) const SPEAKER: &str = "Run monitor of this workspace";

/// State of the provider.
#[derive(Default)]
pub(super) struct Provider {
    told: Mutex<Vec<String>>,
}

impl Provider {
    /// Guidance in the newest request, in order.
    pub(super) fn told(&self) -> Vec<String> {
        lock(&self.told).clone()
    }
}

pub(super) fn routes(provider: Arc<Provider>) -> Router {
    Router::new().route("/v1/messages", post(answer)).with_state(provider)
}

async fn answer(State(provider): State<Arc<Provider>>, Json(request): Json<Value>) -> Json<Value> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let told =
        |message: &Value| (message["role"] == "system").then(|| text_of(&message["content"]));
    *lock(&provider.told) = messages.iter().filter_map(told).collect();
    let is_guidance = |message: &Value| told(message).is_some_and(|text| text.contains(SPEAKER));
    let results = messages.iter().filter(|message| is_result(message)).count();
    let guided_at = messages.iter().position(is_guidance);
    let since =
        guided_at.map(|at| messages[at..].iter().filter(|message| is_result(message)).count());
    let content = next(results, since);
    let is_over = content.len() == 1;
    let output = Value::from(content.clone()).to_string().len() / BYTES_PER_TOKEN;
    Json(json!({
        "id": format!("msg_{results}"), "type": "message", "role": "assistant", "model": MODEL,
        "content": content, "stop_reason": if is_over { "end_turn" } else { "tool_use" }, "stop_sequence": null,
        "usage": { "input_tokens": request.to_string().len() / BYTES_PER_TOKEN, "output_tokens": output },
    }))
}

fn is_result(message: &Value) -> bool {
    message["content"][0]["type"] == "tool_result"
}

fn text_of(content: &Value) -> String {
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default().to_owned()
}

/// Next reply of the script; `since` is the number of results after the guidance.
fn next(results: usize, since: Option<usize>) -> Vec<Value> {
    let says = |text: &str| json!({ "type": "text", "text": text });
    let calls = |name: &str, input: Value| json!({ "type": "tool_use", "id": format!("toolu_{results}"), "name": name, "input": input });
    match (results, since) {
        (0, None) => {
            vec![says("I look at what there is."), calls("list_files", json!({ "path": "." }))]
        }
        (RESULTS_MAX.., None) => {
            vec![says("I could not find the setting. Please tell me where it is.")]
        }
        (_, None) => vec![
            says("I search for the session timeout setting."),
            calls("search", json!({ "query": "session timeout" })),
        ],
        (_, Some(0)) => vec![
            says("The search finds nothing and will not. I read the configuration instead."),
            calls("read_file", json!({ "path": "config/session.toml" })),
        ],
        (_, Some(_)) => {
            vec![says("Sessions end after 300 seconds: `idle_seconds` in config/session.toml.")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_stops_by_itself_or_when_it_is_guided() {
        let is_over = |results, since| next(results, since).len() == 1;
        assert!((0..RESULTS_MAX).all(|results| !is_over(results, None)));
        assert!(is_over(RESULTS_MAX, None));
        assert!(!is_over(5, Some(0)) && is_over(6, Some(1)));
    }
}
