//! Conversations that the provider keeps: a request brings only what is new, and goes on from an answer or by a name.

use rb_store::{RunFilter, Scope, Store as _};
use serde_json::{Value, json};

use super::Stage;
use super::upstream::{Act, Seen, answer};
use crate::auth::ORG_DEFAULT;

/// How a client tells what it goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `previous_response_id` of Responses.
    Answer,
    /// `conversation` of Responses.
    Name,
    /// `thread` of Messages, which has its tools only at first.
    Thread,
}

const CALLS: usize = 8;
const INPUT: &str = r#"{"query":"session"}"#;

impl Way {
    fn path(self) -> &'static str {
        match self {
            Self::Answer | Self::Name => "/openai/v1/responses",
            Self::Thread => "/anthropic/v1/messages",
        }
    }

    /// The request after so many answers: the task, or what came back from the last call.
    fn request(self, answers: usize) -> Value {
        let before = answers.checked_sub(1);
        if self == Self::Thread {
            let result = |last| json!([{ "type": "tool_result", "tool_use_id": format!("c{last}"), "content": "nothing" }]);
            let content = before.map_or_else(|| json!("Find the session."), result);
            let mut body = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": content }] });
            body["thread"] = match before {
                None => json!({ "type": "create" }),
                Some(last) => {
                    json!({ "type": "continue", "previous_message_id": format!("a{last}") })
                }
            };
            if before.is_none() {
                body["tools"] = json!([{ "name": "search", "input_schema": {} }]);
            }
            return body;
        }
        let result = |last| json!([{ "type": "function_call_output", "call_id": format!("c{last}"), "output": "nothing" }]);
        let input = before.map_or_else(|| json!("Find the session."), result);
        let mut body = json!({ "model": "m", "input": input, "tools": [{ "type": "function", "name": "search" }] });
        match (self, before) {
            (Self::Answer, Some(last)) => {
                body["previous_response_id"] = json!(format!("a{last}"));
            }
            (Self::Name, _) => body["conversation"] = json!({ "id": "conv_1" }),
            (Self::Answer | Self::Thread, _) => {}
        }
        body
    }

    /// The model asks for the same again.
    fn answer(self, number: usize) -> Value {
        let (id, call) = (format!("a{number}"), format!("c{number}"));
        if self == Self::Thread {
            let input: Value = serde_json::from_str(INPUT).unwrap();
            return json!({ "id": id, "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
                "content": [{ "type": "text", "text": "I look." }, { "type": "tool_use", "id": call, "name": "search", "input": input }],
                "usage": { "input_tokens": 10, "output_tokens": 5 } });
        }
        json!({ "id": id, "object": "response", "status": "completed", "model": "m",
            "output": [{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
                { "type": "function_call", "call_id": call, "name": "search", "arguments": INPUT }],
            "usage": { "input_tokens": 10, "output_tokens": 5, "total_tokens": 15 } })
    }
}

fn script(way: Way) -> impl FnMut(&Seen) -> Vec<Act> + Send + 'static {
    let mut answers = 0;
    move |_| {
        let body = way.answer(answers).to_string();
        answers += 1;
        answer("200 OK", "application/json", body.as_bytes())
    }
}

async fn runs(stage: &Stage) -> Vec<String> {
    assert!(stage.app.gateway.settled().await);
    let filter = RunFilter { count_max: 50, ..RunFilter::default() };
    let all = stage.store.runs(&Scope::org(ORG_DEFAULT), &filter).await.unwrap();
    all.into_iter().map(|run| run.run.run_id).collect()
}

#[tokio::test]
async fn what_the_provider_keeps_is_one_run_with_its_calls_and_is_steered() {
    for way in [Way::Answer, Way::Name, Way::Thread] {
        let stage = Stage::new(script(way)).await;
        for answers in 0..CALLS {
            let got = stage.post(way.path(), &[], &way.request(answers).to_string()).await;
            assert_eq!(got.status, 200, "{way:?}"); // and the next one follows at once
        }
        let runs = runs(&stage).await;
        assert_eq!(runs.len(), 1, "{way:?}: {runs:?}");
        let steps = stage.steps(&runs[0]).await;
        let done: Vec<_> = steps.iter().map(|step| step.action.as_deref()).collect();
        assert_eq!(done[0], None, "{way:?}");
        assert_eq!(done[1..], [Some("search"); CALLS - 1], "{way:?}");
        let said = |step: &rb_store::StepRow| {
            step.thought == "I look." && step.observation.as_deref() == Some("nothing")
        };
        assert!(steps[1..].iter().all(said), "{way:?}: {steps:?}");
        let seen = stage.upstream.seen();
        let told: Vec<_> =
            seen.iter().filter(|seen| seen.text().contains("[REASONBLOCKS]")).collect();
        assert!((1..4).contains(&told.len()), "{way:?}: said, and not again in every request");
    }
}

#[tokio::test]
async fn a_kept_conversation_is_found_again_after_a_restart_and_a_call_made_again_is_one_step() {
    for way in [Way::Answer, Way::Thread] {
        let mut stage = Stage::new(script(way)).await;
        for answers in 0..4 {
            stage.post(way.path(), &[], &way.request(answers).to_string()).await;
            assert!(stage.app.gateway.settled().await);
        }
        stage.restart().await;
        stage.post(way.path(), &[], &way.request(4).to_string()).await;
        let runs = runs(&stage).await;
        assert_eq!(runs.len(), 1, "{way:?}: {runs:?}");
        assert_eq!(stage.steps(&runs[0]).await.len(), 5, "{way:?}");
    }
}

#[tokio::test]
async fn a_call_that_failed_and_is_made_again_is_one_step() {
    for way in [Way::Answer, Way::Name, Way::Thread] {
        let mut usual = script(way);
        let mut requests = 0;
        let stage = Stage::new(move |seen| {
            requests += 1;
            if requests == 3 {
                answer("529 Overloaded", "application/json", b"{}")
            } else {
                usual(seen)
            }
        })
        .await;
        for answers in [0, 1, 2, 2, 3] {
            stage.post(way.path(), &[], &way.request(answers).to_string()).await;
            assert!(stage.app.gateway.settled().await);
        }
        let runs = runs(&stage).await;
        assert_eq!(runs.len(), 1, "{way:?}: {runs:?}");
        let steps = stage.steps(&runs[0]).await;
        let done: Vec<_> = steps.iter().map(|step| step.action.as_deref()).collect();
        assert_eq!(done, [None, Some("search"), Some("search"), Some("search")], "{way:?}");
    }
}
