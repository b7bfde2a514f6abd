//! Tests of the position of guidance; all other bytes remain unchanged.

use super::*;
use crate::dialects::{DIALECTS, Dialect, by_id};
use crate::json::quoted;
use proptest::prelude::*;
use serde_json::json;

/// Path of the requests; only some dialects have the model in it.
const PATH: &str = "/v1beta/models/m:generateContent";

const TEXT: &str = "[REASONBLOCKS]\nLook \"again\" \u{7}é.";

fn scan<'a>(dialect: &str, body: &'a str) -> ParsedRequest<'a> {
    ParsedRequest::parse(by_id(dialect).expect("a dialect"), PATH, body.as_bytes()).expect("a body")
}

/// Returns the edited body, which must be JSON and contain all bytes of the original in order.
#[track_caller]
fn applied(body: &str, edits: &BodyEdits<'_>) -> String {
    let edited = String::from_utf8(edits.apply()).expect("text");
    serde_json::from_str::<serde_json::Value>(&edited).expect("JSON");
    assert!(is_subsequence(body.as_bytes(), edited.as_bytes()), "{edited}");
    edited
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}

/// Checks the list of messages after an injection into the channel; `None` means no injection.
#[track_caller]
fn check(dialect: &str, channel: Channel, list: &str, expected: Option<&str>) {
    let field = by_id(dialect).expect("a dialect").messages_field();
    let body = format!(r#"{{ "{field}" : {list} , "model":"m"}}"#);
    let tail = inject_tail(&scan(dialect, &body), &[], Some("T"), &[channel]);
    assert_eq!(tail.injection.is_some(), expected.is_some(), "{dialect} {channel:?} {list}");
    let expected = format!(r#"{{ "{field}" : {} , "model":"m"}}"#, expected.unwrap_or(list));
    assert_eq!(applied(&body, &tail.edits), expected);
}

#[test]
fn anthropic_has_a_place_behind_the_user() {
    use Channel::{DeveloperMessage, SystemMessage, TextBlock};
    let check = |channel, list: &str, expected: Option<&str>| {
        check("anthropic", channel, list, expected);
    };
    let ours = r#"{"role":"system","content":"T"}"#;
    let user = r#"{"role":"user","content":"a"}"#;
    check(SystemMessage, &format!("[{user} ]"), Some(&format!("[{user},{ours} ]")));
    check(DeveloperMessage, &format!("[{user}]"), None);
    check(
        TextBlock,
        &format!("[{user}]"),
        Some(
            r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"T"}]}]"#,
        ),
    );
    check(
        TextBlock,
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","cache_control":{"type":"ephemeral"}} ]}]"#,
        Some(
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","cache_control":{"type":"ephemeral"}},{"type":"text","text":"T"} ]}]"#,
        ),
    );
    check(
        TextBlock,
        r#"[{"content":[],"role":"user"}]"#,
        Some(r#"[{"content":[{"type":"text","text":"T"}],"role":"user"}]"#),
    );
    // No position: the last message is the model's, or a system message of the client.
    let assistant = r#"{"role":"assistant","content":"b"}"#;
    for channel in [SystemMessage, TextBlock] {
        check(channel, &format!("[{user},{assistant}]"), None);
        check(channel, "[]", None);
        check(
            channel,
            r#"[{"role":"user"}]"#,
            (channel == SystemMessage)
                .then_some(r#"[{"role":"user"},{"role":"system","content":"T"}]"#),
        );
    }
    let theirs = r#"{"role":"system","content":"s"}"#;
    check(SystemMessage, &format!("[{user},{theirs}]"), None);
    check(
        TextBlock,
        &format!("[{user},{theirs}]"),
        Some(&format!(
            r#"[{{"role":"user","content":[{{"type":"text","text":"a"}},{{"type":"text","text":"T"}}]}},{theirs}]"#
        )),
    );
}

#[test]
fn openai_has_a_place_behind_users_and_tools() {
    use Channel::{DeveloperMessage, SystemMessage, TextBlock, UserMessage};
    let user = r#"{"role":"user","content":"a"}"#;
    let tool = r#"{"role":"tool","tool_call_id":"c","content":"a"}"#;
    let asks = r#"{"role":"assistant","tool_calls":[{"id":"c"}]}"#;
    for (channel, role) in
        [(DeveloperMessage, "developer"), (SystemMessage, "system"), (UserMessage, "user")]
    {
        let ours = format!(r#"{{"role":"{role}","content":"T"}}"#);
        check("openai-chat", channel, &format!("[{user}]"), Some(&format!("[{user},{ours}]")));
        let list = format!("[{user},{asks},{tool}");
        check("openai-chat", channel, &format!("{list}]"), Some(&format!("{list},{ours}]")));
        check("openai-chat", channel, &format!("[{user},{asks}]"), None);
    }
    let ours =
        r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"T"}]}"#;
    let responses = |list: &str, expected: Option<&str>| {
        check("openai-responses", DeveloperMessage, list, expected);
    };
    responses(r#""a\"b""#, Some(&format!(r#"[{{"role":"user","content":"a\"b"}},{ours}]"#)));
    let output = r#"{"type":"function_call_output","call_id":"c","output":"x"}"#;
    responses(&format!("[{output}\n]"), Some(&format!("[{output},{ours}\n]")));
    responses(r#"[{"type":"function_call","call_id":"c"}]"#, None);
    responses(r#"[{"type":"reasoning","summary":[]}]"#, None);
    responses(r#"[{"type":"item_reference","id":"x"}]"#, None);
    responses("null", None);
    check("openai-chat", TextBlock, &format!("[{user}]"), None);
    check("openai-responses", TextBlock, &format!("[{user}]"), None);
}

#[test]
fn gemini_accepts_text_in_the_last_user_content() {
    use Channel::{DeveloperMessage, SystemMessage, TextBlock, UserMessage};
    let user = r#"{"role":"user","parts":[{"text":"a"}]}"#;
    let call = r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}"#;
    let result = r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}} ]}"#;
    let ours = r#"{"role":"user","parts":[{"text":"T"}]}"#;
    let cases = [
        (
            TextBlock,
            user.to_owned(),
            Some(r#"{"role":"user","parts":[{"text":"a"},{"text":"T"}]}"#.to_owned()),
        ),
        (
            TextBlock,
            format!("{user},{call},{result}"),
            Some(format!("{user},{call},{}", result.replace("}}} ]", r#"}}},{"text":"T"} ]"#))),
        ),
        (TextBlock, r#"{"parts":[]}"#.to_owned(), Some(r#"{"parts":[{"text":"T"}]}"#.to_owned())),
        (TextBlock, r#"{"role":"user"}"#.to_owned(), None),
        (UserMessage, user.to_owned(), Some(format!("{user},{ours}"))),
        (TextBlock, format!("{user},{call}"), None),
        (UserMessage, format!("{user},{call}"), None),
        (SystemMessage, user.to_owned(), None),
        (DeveloperMessage, user.to_owned(), None),
    ];
    for (channel, list, expected) in cases {
        let expected = expected.map(|list| format!("[{list}]"));
        check("gemini", channel, &format!("[{list}]"), expected.as_deref());
    }
}

#[test]
fn the_first_channel_with_a_place_is_taken() {
    let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"system","content":"s"}]}"#;
    let request = scan("anthropic", body);
    let found = inject_tail(&request, &[], Some("T"), request.dialect.channels())
        .injection
        .expect("a place");
    assert_eq!((found.channel, found.message), (Channel::TextBlock, 0));
    assert!(inject_tail(&request, &[], None, request.dialect.channels()).edits.is_empty());
    assert!(inject_tail(&request, &[], Some("T"), &[]).injection.is_none());
    assert!(Channel::ALL.iter().all(|channel| Channel::by_id(channel.id()) == Some(*channel)));
}

#[test]
fn what_was_planted_stays_or_goes_with_its_history() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let body = |messages: &[serde_json::Value]| json!({"messages": messages}).to_string();
    let first = body(&[user("a")]);
    let request = scan("anthropic", &first);
    let injection = inject_tail(&request, &[], Some(TEXT), &[Channel::SystemMessage])
        .injection
        .expect("a place");
    let injection = [injection];
    // History, whether the old fragment is repeated, whether a new one is inserted.
    let cases = [
        (body(&[user("a")]), true, false),
        (body(&[user("a"), assistant("b"), user("c")]), true, true),
        (body(&[user("A"), assistant("b"), user("c")]), false, true),
        (body(&[user("a"), user("b")]), false, true),
        (body(&[]), false, false),
    ];
    for (body, stays, finds) in cases {
        let tail = inject_tail(
            &scan("anthropic", &body),
            &injection,
            Some("new"),
            &[Channel::SystemMessage],
        );
        let edited = applied(&body, &tail.edits);
        assert_eq!(edited.contains(&quoted(TEXT)), stays, "{edited}");
        assert_eq!(tail.injection.is_some(), finds, "{body}");
    }
    let kept = r#"{"previous_response_id":"r","input":"a"}"#;
    let request = scan("openai-responses", kept);
    let earlier = [Injection {
        hash: request.messages[0].hash,
        channel: Channel::DeveloperMessage,
        ..injection[0].clone()
    }];
    let tail = inject_tail(&request, &earlier, None, &[]);
    assert!(tail.edits.is_empty(), "the provider stores it");
}

#[test]
fn a_fragment_never_parts_a_call_from_its_answer() {
    let call = r#"{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]}"#;
    let answer = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#);
    let first = format!(r#"{{"messages":[{call},{}]}}"#, answer("a"));
    let request = scan("openai-chat", &first);
    let injection = inject_tail(&request, &[], Some("T"), request.dialect.channels())
        .injection
        .expect("a place");
    let second = format!(r#"{{"messages":[{call},{},{}]}}"#, answer("a"), answer("b"));
    let tail = inject_tail(&scan("openai-chat", &second), &[injection], None, &[]);
    assert_eq!(applied(&second, &tail.edits), second);
}

#[test]
fn the_system_prompt_takes_a_block() {
    // `BLOCK` is replaced by the block of the text.
    let cases = [
        (
            "anthropic",
            r#"{"system":"base","messages":[]}"#,
            r#"{"system":[{"type":"text","text":"base","cache_control":{"type":"ephemeral"}},BLOCK],"messages":[]}"#,
        ),
        ("anthropic", r#"{"system":""}"#, r#"{"system":[BLOCK]}"#),
        ("anthropic", r#"{"system":null}"#, r#"{"system":[BLOCK]}"#),
        ("anthropic", " {\n}", " {\"system\":[BLOCK]\n}"),
        ("anthropic", r#"{"messages":[]}"#, r#"{"system":[BLOCK],"messages":[]}"#),
        (
            "anthropic",
            r#"{"system":[{"type":"text","text":"base"}]}"#,
            r#"{"system":[{"type":"text","text":"base"},BLOCK]}"#,
        ),
        ("openai-responses", r#"{"instructions":"base"}"#, r#"{"instructions":"base\n\nT"}"#),
        ("openai-responses", r#"{"instructions":null}"#, r#"{"instructions":"T"}"#),
        ("openai-responses", r#"{"input":"x"}"#, r#"{"instructions":"T","input":"x"}"#),
        (
            "openai-chat",
            r#"{"messages":[{"role":"developer","content":"base"}]}"#,
            r#"{"messages":[{"role":"developer","content":"base\n\nT"}]}"#,
        ),
        (
            "openai-chat",
            r#"{"messages":[{"role":"system","content":[{"type":"text","text":"base"}]}]}"#,
            r#"{"messages":[{"role":"system","content":[{"type":"text","text":"base"},BLOCK]}]}"#,
        ),
        (
            "openai-chat",
            r#"{"messages":[{"role":"user","content":"a"}]}"#,
            r#"{"messages":[{"role":"system","content":"T"},{"role":"user","content":"a"}]}"#,
        ),
        ("openai-chat", r#"{"messages":[]}"#, r#"{"messages":[{"role":"system","content":"T"}]}"#),
        (
            "gemini",
            r#"{"contents":[]}"#,
            r#"{"systemInstruction":{"parts":[{"text":"T"}]},"contents":[]}"#,
        ),
        (
            "gemini",
            r#"{"system_instruction":{"parts":[{"text":"base"}]}}"#,
            r#"{"system_instruction":{"parts":[{"text":"base"},{"text":"T"}]}}"#,
        ),
        (
            "gemini",
            r#"{"systemInstruction":null}"#,
            r#"{"systemInstruction":{"parts":[{"text":"T"}]}}"#,
        ),
        ("gemini", r#"{"systemInstruction":"base"}"#, r#"{"systemInstruction":"base"}"#),
    ];
    for (dialect, body, expected) in cases {
        let edited = inject_system(&scan(dialect, body), "T").apply();
        let edited = String::from_utf8(edited).expect("text");
        assert_eq!(edited, expected.replace("BLOCK", r#"{"type":"text","text":"T"}"#));
        serde_json::from_str::<serde_json::Value>(&edited).expect("JSON");
    }
}

#[test]
fn the_number_of_cache_markers_has_a_maximum() {
    let full =
        format!(r#"{{"system":"base","messages":[{}]}}"#, [r#"{"cache_control":{}}"#; 4].join(","));
    let edited =
        String::from_utf8(inject_system(&scan("anthropic", &full), "T").apply()).expect("text");
    assert_eq!(edited.matches("cache_control").count(), 4, "no more markers than are allowed");
}

#[test]
fn the_model_changes_in_the_body_or_in_the_url() {
    let cases = [
        (
            "anthropic",
            "/v1/messages",
            r#"{"x":{"model":"no"},"model" : "a" ,"messages":[]}"#,
            "/v1/messages",
            r#"{"x":{"model":"no"},"model" : "b\"c" ,"messages":[]}"#,
        ),
        ("anthropic", "/v1/messages", "{}", "/v1/messages", "{}"),
        (
            "gemini",
            "/v1beta/models/a:streamGenerateContent?alt=sse",
            r#"{"model":"no"}"#,
            r#"/v1beta/models/b"c:streamGenerateContent?alt=sse"#,
            r#"{"model":"no"}"#,
        ),
    ];
    for (dialect, path, body, expected_path, expected_body) in cases {
        let dialect = by_id(dialect).expect("a dialect");
        let request = ParsedRequest::parse(dialect, path, body.as_bytes()).expect("a body");
        let mut target = path.to_owned();
        let edits = set_model(&request, "b\"c", &mut target);
        assert_eq!(
            (target.as_str(), edits.apply().as_slice()),
            (expected_path, expected_body.as_bytes())
        );
    }
    let request = scan("anthropic", r#"{"model":"a"}"#);
    let mut edits = set_model(&request, "b", &mut String::new());
    edits.extend(inject_system(&request, "T"));
    let expected = r#"{"system":[{"type":"text","text":"T"}],"model":"b"}"#;
    assert_eq!(edits.apply(), expected.as_bytes());
}

/// Next turn of a generated conversation.
#[derive(Debug, Clone)]
enum Turn {
    Talk(String),
    Calls(Vec<String>),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        ".{0,12}".prop_map(Turn::Talk),
        proptest::collection::vec(".{0,12}", 1..4).prop_map(Turn::Calls),
    ]
}

fn text_message(dialect: &dyn Dialect, role: &str, text: &str) -> serde_json::Value {
    if dialect.id() == "gemini" {
        let role = if role == "assistant" { "model" } else { role };
        return json!({"role": role, "parts": [{"text": text}]});
    }
    json!({"role": role, "content": text})
}

/// Returns the messages of one turn in a dialect: first the model's, then the results.
fn messages(
    dialect: &dyn Dialect,
    number: usize,
    turn: &Turn,
) -> (Vec<serde_json::Value>, Vec<serde_json::Value>) {
    let calls = match turn {
        Turn::Talk(text) => {
            return (
                vec![text_message(dialect, "assistant", text)],
                vec![text_message(dialect, "user", text)],
            );
        }
        Turn::Calls(calls) => calls,
    };
    let id = |at: usize| format!("c{number}_{at}");
    let each = |make: &dyn Fn(usize, &String) -> serde_json::Value| -> Vec<serde_json::Value> {
        calls.iter().enumerate().map(|(at, text)| make(at, text)).collect()
    };
    match dialect.id() {
        "gemini" => {
            let calls =
                each(&|_, text| json!({"functionCall": {"name": "f", "args": {"x": text}}}));
            let results = each(
                &|_, text| json!({"functionResponse": {"name": "f", "response": {"output": text}}}),
            );
            let model = json!({"role": "model", "parts": calls});
            (vec![model], vec![json!({"role": "user", "parts": results})])
        }
        "anthropic" => {
            let asked = each(
                &|at, text| json!({"type": "tool_use", "id": id(at), "name": "f", "input": {"x": text}}),
            );
            let argument = each(
                &|at, text| json!({"type": "tool_result", "tool_use_id": id(at), "content": text}),
            );
            let model = json!({"role": "assistant", "content": asked});
            (vec![model], vec![json!({"role": "user", "content": argument})])
        }
        "openai-chat" => {
            let asked = each(
                &|at, text| json!({"id": id(at), "type": "function", "function": {"name": "f", "arguments": text}}),
            );
            let model = json!({"role": "assistant", "content": null, "tool_calls": asked});
            (
                vec![model],
                each(&|at, text| json!({"role": "tool", "tool_call_id": id(at), "content": text})),
            )
        }
        _ => (
            each(
                &|at, text| json!({"type": "function_call", "call_id": id(at), "name": "f", "arguments": text}),
            ),
            each(
                &|at, text| json!({"type": "function_call_output", "call_id": id(at), "output": text}),
            ),
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// With fragments at any steps and in any channel, every request is a prefix of the next, and without the
    /// fragments it equals the client's request.
    #[test]
    fn every_request_begins_with_the_one_before(
        turns in proptest::collection::vec((turn(), proptest::option::of(".{1,20}")), 1..8),
        dialect in 0..DIALECTS.len(),
        first_channel in 0..3_usize,
    ) {
        let dialect = DIALECTS[dialect];
        let channels: Vec<Channel> =
            dialect.channels().iter().copied().cycle().skip(first_channel).take(dialect.channels().len()).collect();
        let mut history = vec![text_message(dialect, "user", "task")];
        let mut injection: Vec<Injection> = Vec::new();
        let mut before: Option<String> = None;
        for (number, (turn, fragment)) in turns.iter().enumerate() {
            let body = json!({"model": "m", "stream": true, dialect.messages_field(): &history}).to_string();
            let request = ParsedRequest::parse(dialect, PATH, body.as_bytes()).expect("a body");
            let tail = inject_tail(&request, &injection, fragment.as_deref(), &channels);
            prop_assert_eq!(tail.injection.is_some(), fragment.is_some());
            let edited = applied(&body, &tail.edits);
            let again = ParsedRequest::parse(dialect, PATH, edited.as_bytes()).expect("a body");
            let list = again.list.expect("a list").json().into_owned();
            if let Some(before) = &before {
                let open = before.strip_suffix(']').expect("a list");
                prop_assert!(list.starts_with(open), "{}\n{}", before, list);
            }
            before = Some(list);
            injection.extend(tail.injection);
            let (model, answers) = messages(dialect, number, turn);
            history.extend(model);
            history.extend(answers);
        }
    }
}
