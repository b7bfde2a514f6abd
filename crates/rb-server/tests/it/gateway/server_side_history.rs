//! Conversations stored by the provider: a request contains only new items, and refers to a previous response or a
//! conversation id.

use rb_store::{RunFilter, RunLists as _, Scope};
use serde_json::{Value, json};

use super::Stage;
use super::upstream::{Act, Seen, answer};
use rb_runtime::auth::DEFAULT_ORG;

/// Reference to the stored conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `previous_response_id` of Responses.
    Answer,
    /// `conversation` of Responses.
    Name,
    /// `thread` of Messages, which has tools only in the first request.
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

    /// Returns the request after a number of responses: the task, or the result of the last call.
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

    /// Returns a response with the same search.
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

/// Works like `script`, but rejects one of the requests.
fn failing_once(way: Way, refused: usize) -> impl FnMut(&Seen) -> Vec<Act> + Send + 'static {
    let mut usual = script(way);
    let mut requests = 0;
    move |seen| {
        requests += 1;
        if requests == refused {
            answer("529 Overloaded", "application/json", b"{}")
        } else {
            usual(seen)
        }
    }
}

async fn runs(stage: &Stage) -> Vec<String> {
    assert!(stage.app.gateway.flush().await);
    let filter = RunFilter { count_max: 50, ..RunFilter::default() };
    let all = stage.store.runs(&Scope::org(DEFAULT_ORG), &filter).await.unwrap();
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
            assert!(stage.app.gateway.flush().await);
        }
        stage.restart().await;
        stage.post(way.path(), &[], &way.request(4).to_string()).await;
        let runs = runs(&stage).await;
        assert_eq!(runs.len(), 1, "{way:?}: {runs:?}");
        assert_eq!(stage.steps(&runs[0]).await.len(), 5, "{way:?}");
    }
}

/// Returns the upstream requests and the stored steps. Each bit of `nodes` selects the node of one request.
async fn told(way: Way, nodes: Option<u32>) -> (Vec<String>, Vec<rb_store::StepRow>) {
    let stage = Stage::new(failing_once(way, 6)).await;
    let other = if nodes.is_some() { stage.neighbour().await } else { stage.address };
    for (at, answers) in [0, 1, 2, 3, 4, 5, 5, 6, 7].into_iter().enumerate() {
        let is_other = nodes.unwrap_or_default() >> at & 1 == 1;
        let address = if is_other { other } else { stage.address };
        let body = way.request(answers).to_string();
        super::client::post(address, way.path(), &[], body.as_bytes()).await;
    }
    let runs = runs(&stage).await;
    assert_eq!(runs.len(), 1, "{way:?} {nodes:?}: {runs:?}");
    let seen = stage.upstream.seen().iter().map(Seen::text).collect();
    (seen, stage.steps(&runs[0]).await)
}

#[tokio::test]
async fn two_nodes_take_what_the_provider_keeps_as_one_would() {
    for way in [Way::Answer, Way::Name, Way::Thread] {
        let (seen, steps) = told(way, None).await;
        let told_once = |steps: &[rb_store::StepRow]| -> Vec<_> {
            let of = |step: &rb_store::StepRow| {
                let said = (step.user_input.clone(), step.thought.clone());
                (said, step.action.clone(), step.observation.clone(), step.injections.clone())
            };
            steps.iter().map(of).collect()
        };
        for nodes in [0b0_1010_1010, 0b0_0000_0010, 0b1_0110_0110] {
            let (seen_here, steps_here) = told(way, Some(nodes)).await;
            assert_eq!(seen_here, seen, "{way:?} {nodes:b}");
            assert_eq!(told_once(&steps_here), told_once(&steps), "{way:?} {nodes:b}");
        }
    }
}

#[tokio::test]
async fn a_call_that_failed_and_is_made_again_is_one_step() {
    for way in [Way::Answer, Way::Name, Way::Thread] {
        let stage = Stage::new(failing_once(way, 3)).await;
        for answers in [0, 1, 2, 2, 3] {
            stage.post(way.path(), &[], &way.request(answers).to_string()).await;
            assert!(stage.app.gateway.flush().await);
        }
        let runs = runs(&stage).await;
        assert_eq!(runs.len(), 1, "{way:?}: {runs:?}");
        let steps = stage.steps(&runs[0]).await;
        let done: Vec<_> = steps.iter().map(|step| step.action.as_deref()).collect();
        assert_eq!(done, [None, Some("search"), Some("search"), Some("search")], "{way:?}");
    }
}

/// Covers clients of Responses that send ids of earlier items instead of the items: in order, or all model items
/// before all results.
#[tokio::test]
async fn answers_that_a_history_only_names_are_known() {
    for is_gathered in [false, true] {
        let mut answers = 0;
        let stage = Stage::new(move |_: &Seen| {
            answers += 1;
            let call = json!({ "type": "function_call", "id": format!("fc_{answers}"), "call_id": format!("call_{answers:06}"), "name": "search", "arguments": INPUT });
            let body = json!({ "id": format!("resp_{answers}"), "object": "response", "status": "completed", "model": "m", "output": [call] });
            answer("200 OK", "application/json", body.to_string().as_bytes())
        })
        .await;
        let names =
            |number: usize| json!({ "type": "item_reference", "id": format!("fc_{number}") });
        let tells = |number: usize| json!({ "type": "function_call_output", "call_id": format!("call_{number:06}"), "output": "nothing" });
        for count in 0..CALLS {
            let mut input = vec![json!({ "role": "user", "content": "Find the session." })];
            if is_gathered {
                input.extend((1..=count).map(names));
                input.extend((1..=count).map(tells));
            } else {
                input.extend((1..=count).flat_map(|number| [names(number), tells(number)]));
            }
            let body = json!({ "model": "m", "input": input, "tools": [{ "type": "function", "name": "search" }] });
            stage.post("/openai/v1/responses", &[], &body.to_string()).await;
        }
        let runs = runs(&stage).await;
        assert_eq!(runs.len(), 1, "gathered: {is_gathered}: {runs:?}");
        let steps = stage.steps(&runs[0]).await;
        let done: Vec<_> = steps.iter().map(|step| step.action.as_deref()).collect();
        assert_eq!(done[0], None);
        assert_eq!(done[1..], [Some("search"); CALLS - 1], "gathered: {is_gathered}");
        let seen = stage.upstream.seen();
        assert!(seen.iter().any(|seen| seen.text().contains("[REASONBLOCKS]")), "it is steered");
    }
}
