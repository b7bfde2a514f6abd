//! Scripted agent: executes the tool calls of the model with fixed outputs.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Method, Request};
use serde_json::{Value, json};

use super::DemoError;
use super::provider::MODEL;
use rb_gateway::Mode;
use rb_runtime::http_client::{self, HttpClient};

/// Task of the agent.
pub const TASK: &str = "Why are users logged out after five minutes?";
const BODY_BYTES_MAX: usize = 1 << 20;
/// More calls than the script has.
const CALLS_MAX: u32 = 40;

/// State of the agent.
pub(super) struct Agent {
    client: HttpClient,
    url: String,
    run_id: String,
    mode: Mode,
    messages: Vec<Value>,
    calls: u32,
}

/// Result of a model call.
pub(super) struct Call {
    pub(super) thought: String,
    /// Tool, input and output; `None` for the final answer.
    pub(super) tool: Option<(String, String, String)>,
}

impl Agent {
    pub(super) fn new(gateway: &str, run_id: &str, mode: Mode) -> Self {
        Self {
            client: http_client::new(),
            url: format!("{gateway}/anthropic/v1/messages"),
            run_id: run_id.to_owned(),
            mode,
            messages: vec![json!({ "role": "user", "content": TASK })],
            calls: 0,
        }
    }

    /// Calls the model and executes its tool call; `None` after the final answer.
    pub(super) async fn call(&mut self) -> Result<Option<Call>, DemoError> {
        let is_over = self.messages.last().is_some_and(|message| message["role"] == "assistant");
        if is_over || self.calls >= CALLS_MAX {
            return Ok(None);
        }
        self.calls += 1;
        let content = self.send().await?["content"].take();
        let thought = content[0]["text"].as_str().unwrap_or_default().to_owned();
        let asked = content[1].clone();
        self.messages.push(json!({ "role": "assistant", "content": content }));
        let Some(name) = asked["name"].as_str() else {
            return Ok(Some(Call { thought, tool: None }));
        };
        let result = result_of(name);
        let answer =
            json!({ "type": "tool_result", "tool_use_id": asked["id"], "content": result });
        self.messages.push(json!({ "role": "user", "content": [answer] }));
        let given = asked["input"].as_object().and_then(|input| input.values().next());
        let given = given.and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Some(Call { thought, tool: Some((name.to_owned(), given, result.to_owned())) }))
    }

    async fn send(&self) -> Result<Value, DemoError> {
        let body = json!({
            "model": MODEL, "max_tokens": 1024, "tools": tools(), "messages": self.messages,
            "system": "You are a careful engineer. Find the cause in this repository and name the file.",
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "scripted-agent")
            .header("x-reasonblocks-run-id", &self.run_id)
            .header("x-reasonblocks-mode", self.mode.name())
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|error| DemoError::Call(error.to_string()))?;
        let answer = self
            .client
            .request(request)
            .await
            .map_err(|error| DemoError::Call(error.to_string()))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| DemoError::Call(error.to_string()))?.to_bytes();
        if !status.is_success() {
            return Err(DemoError::Call(format!("{status}: {}", String::from_utf8_lossy(&body))));
        }
        serde_json::from_slice(&body).map_err(|error| DemoError::Call(error.to_string()))
    }
}

fn tools() -> Value {
    let tool = |name: &str, about: &str, field: &str| {
        let schema = json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
        json!({ "name": name, "description": about, "input_schema": schema })
    };
    json!([
        tool("list_files", "Lists the files of a folder.", "path"),
        tool("search", "Searches all files for a text.", "query"),
        tool("read_file", "Reads a file.", "path"),
    ])
}

fn result_of(tool: &str) -> &'static str {
    match tool {
        "list_files" => "config/  src/  tests/  README.md",
        "search" => "no matches in 214 files",
        "read_file" => "[session]\nstore = \"redis\"\nidle_seconds = 300",
        _ => "there is no such tool",
    }
}
