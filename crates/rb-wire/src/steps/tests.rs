//! Conversations of every dialect and their steps.

use std::fmt::Write as _;

use super::*;
use crate::dialects::by_id;

/// Path of the requests; only some dialects have the model in it.
const PATH: &str = "/v1beta/models/m:generateContent";

fn shown(steps: &[RunStep<'_>]) -> String {
    let mut text = String::new();
    for step in steps {
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                let _ = write!(text, "{name}={value:?} ");
            }
        };
        field("user", &step.user_input);
        field("thought", &step.thought);
        field("tool", &step.tool);
        match &step.input {
            RunInput::None => {}
            RunInput::Text(input) => field("text", input),
            RunInput::Structured(input) => field("json", input),
        }
        field("observation", &step.observation);
        if step.is_error {
            text.push_str("ERROR");
        }
        text = text.trim_end().to_owned() + "\n";
    }
    text.trim_end().to_owned()
}

/// Reads a conversation at once and message by message, and compares both with what is expected.
#[track_caller]
fn check(dialect: &str, body: &str, expected: &str) -> PendingTurn {
    let dialect = by_id(dialect).expect("a dialect");
    let request = ParsedRequest::parse(dialect, PATH, body.as_bytes()).expect("a body");
    let whole = extract(&request, 0, &PendingTurn::default()).clone_owned();
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(shown(&whole.steps), expected.join("\n"));

    let (mut steps, mut pending, mut hashes) = (Vec::new(), PendingTurn::default(), Vec::new());
    for count in 1..=request.messages.len() {
        let mut request = request.clone();
        request.messages.truncate(count);
        let continuity = Continuity::between(&hashes, &request.hashes());
        let new = advance(&request, continuity, &pending).clone_owned();
        steps.extend(new.steps);
        pending = new.pending;
        assert_eq!(carry_at(&request, count), pending, "after {count} messages");
        hashes = request.hashes();
    }
    assert_eq!(shown(&steps), shown(&whole.steps), "message by message");
    assert_eq!(pending, whole.pending, "message by message");
    pending
}

impl NewSteps<'_> {
    fn clone_owned(self) -> NewSteps<'static> {
        let steps = self.steps.into_iter().map(RunStep::into_owned).collect();
        NewSteps { steps, pending: self.pending }
    }
}

#[test]
fn anthropic_thinking_parallel_calls_and_errors() {
    let pending = check(
        "anthropic",
        r#"{"model":"claude-sonnet-5","max_tokens":8000,"stream":true,
            "system":[{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],
            "tools":[{"name":"bash","input_schema":{"type":"object"}}],
            "messages":[
            {"role":"user","content":[
                {"type":"text","text":"<system-reminder>Today is Monday.</system-reminder>"},
                {"type":"text","text":"Fix the \"login\" bug"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBOR"}},
                {"type":"document","source":{"type":"text","data":"not said"}}]},
            {"role":"assistant","content":[
                {"type":"thinking","thinking":"Where is it?","signature":"EqQBCg=="},
                {"type":"redacted_thinking","data":"EmwKAh=="},
                {"type":"text","text":"I look."},
                {"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls -l", "n": 1.0}},
                {"type":"tool_use","id":"t2","name":"read","input":{"path":"a.py"}}]},
            {"role":"user","content":[
                {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"no such file"}],"is_error":true},
                {"type":"tool_result","tool_use_id":"t1","content":"a\nb"},
                {"type":"text","text":"Use b.py\n"}]},
            {"role":"system","content":"a message between the others"},
            {"role":"assistant","content":"I cannot find it."},
            {"role":"user","content":"Then stop."},
            {"role":"user","content":[{"type":"unheard_of","text":"?"}]}]}"#,
        r#"
        user="Fix the \"login\" bug" thought="Where is it?\n\nI look." tool="bash" json="{\"command\":\"ls -l\", \"n\": 1.0}" observation="a\nb"
        tool="read" json="{\"path\":\"a.py\"}" observation="no such file" ERROR
        user="Use b.py" thought="I cannot find it."
        "#,
    );
    assert_eq!(pending.said_since, "Then stop.");
}

#[test]
fn anthropic_tools_that_the_provider_runs() {
    check(
        "anthropic",
        r#"{"messages":[
            {"role":"user","content":"When was it?"},
            {"role":"assistant","content":[
                {"type":"compaction","content":"what was before"},
                {"type":"text","text":"I search."},
                {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"it"}},
                {"type":"web_search_tool_result","tool_use_id":"s1","content":[
                    {"type":"web_search_result","title":"It","url":"https://example.org","encrypted_content":"EqA"}]},
                {"type":"text","text":"Once more.","citations":[]},
                {"type":"server_tool_use","id":"s2","name":"web_search","input":{"query":"that"}},
                {"type":"web_search_tool_result","tool_use_id":"s2","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}},
                {"type":"mcp_tool_use","id":"m1","name":"echo","server_name":"x","input":{}},
                {"type":"mcp_tool_result","tool_use_id":"m1","is_error":false,"content":[{"type":"text","text":"hello"}]},
                {"type":"text","text":"In 1999."}]},
            {"role":"user","content":"Thanks"}]}"#,
        r#"
        user="When was it?" thought="I search." tool="web_search" json="{\"query\":\"it\"}" observation="It\nhttps://example.org"
        thought="Once more." tool="web_search" json="{\"query\":\"that\"}" observation="max_uses_exceeded" ERROR
        tool="echo" json="{}" observation="hello"
        thought="In 1999."
        "#,
    );
}

#[test]
fn a_call_that_nobody_answers_is_a_step_once_the_model_goes_on() {
    check(
        "anthropic",
        r#"{"messages":[
            {"role":"user","content":"go"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]},
            {"role":"user","content":"[Request interrupted by user]"},
            {"role":"user","content":"no, wait"},
            {"role":"assistant","content":"Yes?"},
            {"role":"user","content":"never mind"}]}"#,
        r#"
        user="go" tool="bash" json="{}"
        user="no, wait" thought="Yes?"
        "#,
    );
}

#[test]
fn chat_completions_with_strings_parts_and_old_functions() {
    let pending = check(
        "openai-chat",
        r#"{"model":"gpt-5","messages":[
            {"role":"developer","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"Book a flight"},{"type":"image_url","image_url":{"url":"data:,"}}]},
            {"role":"assistant","content":null,"reasoning_content":"Which one?","refusal":null,"tool_calls":[
                {"id":"c1","type":"function","function":{"name":"find","arguments":"{\"to\": \"Rome\"}"}},
                {"id":"c2","type":"custom","custom":{"name":"note","input":"Rome"}}]},
            {"role":"tool","tool_call_id":"c1","content":"2 flights"},
            {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"ok"}]},
            {"role":"assistant","content":"","function_call":{"name":"book","arguments":"{}"}},
            {"role":"function","name":"book","content":"Error: sold out"},
            {"role":"assistant","content":[{"type":"text","text":"Sold out."},{"type":"refusal","refusal":"I will not."}]},
            {"role":"user","content":"Another?"},
            {"role":"assistant","content":"Yes.","tool_calls":[{"id":"c3","type":"function","function":{"name":"find","arguments":""}}]}]}"#,
        r#"
        user="Book a flight" thought="Which one?" tool="find" text="{\"to\": \"Rome\"}" observation="2 flights"
        tool="note" text="Rome" observation="ok"
        tool="book" text="{}" observation="Error: sold out"
        thought="Sold out.\n\nI will not."
        "#,
    );
    assert_eq!((pending.user_input.as_str(), pending.thought.as_str()), ("Another?", "Yes."));
    assert_eq!(pending.calls.len(), 1);
}

#[test]
fn calls_that_share_an_id_are_answered_in_their_order() {
    check(
        "openai-chat",
        r#"{"messages":[
            {"role":"user","content":"go"},
            {"role":"assistant","tool_calls":[{"id":"","function":{"name":"a","arguments":"1"}},{"id":"","function":{"name":"b","arguments":"2"}}]},
            {"role":"tool","tool_call_id":"","content":"one"},
            {"role":"tool","tool_call_id":"","content":"two"},
            {"role":"assistant","tool_calls":[{"id":"","function":{"name":"a","arguments":"1"}}]},
            {"role":"tool","tool_call_id":"","content":"three"}]}"#,
        r#"
        user="go" tool="a" text="1" observation="one"
        tool="b" text="2" observation="two"
        tool="a" text="1" observation="three"
        "#,
    );
}

#[test]
fn responses_items_of_every_kind() {
    check(
        "openai-responses",
        r##"{"model":"gpt-5-codex","instructions":"You are Codex.","store":false,"input":[
            {"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>"}]},
            {"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>"}]},
            {"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"}]},
            {"role":"user","content":"Fix it"},
            {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Looking**"}],"content":null,"encrypted_content":"gAAAA"},
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
            {"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"command\":[\"ls\"]}"},
            {"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin Patch"},
            {"type":"function_call_output","call_id":"c1","output":"{\"output\":\"not found\",\"metadata\":{\"exit_code\":127,\"duration_seconds\":0.1}}"},
            {"type":"custom_tool_call_output","call_id":"c2","output":"Done"},
            {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},
            {"type":"mcp_call","id":"mcp_1","name":"ask","server_label":"s","arguments":"{}","output":"42","error":null},
            {"type":"mcp_call","id":"mcp_2","name":"ask","server_label":"s","arguments":"{}","output":null,"error":"refused"},
            {"type":"local_shell_call","call_id":"l1","status":"completed","action":{"type":"exec","command":["pwd"]}},
            {"type":"local_shell_call_output","call_id":"l1","output":"/w"},
            {"type":"shell_call","call_id":"l2","action":{"commands":["false"]}},
            {"type":"shell_call_output","call_id":"l2","output":[{"stdout":"","stderr":"","outcome":{"type":"exit","exit_code":1}}]},
            {"type":"compaction","encrypted_content":"gAAAB"},
            {"type":"item_reference","id":"msg_1"},
            {"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]},
            {"role":"user","content":"Why?"}]}"##,
        r#"
        user="Fix it" thought="**Looking**\n\nI look." tool="shell" text="{\"command\":[\"ls\"]}" observation="not found" ERROR
        tool="apply_patch" text="*** Begin Patch" observation="Done"
        tool="web_search" json="{\"type\":\"search\",\"query\":\"q\"}"
        tool="ask" text="{}" observation="42"
        tool="ask" text="{}" observation="refused" ERROR
        tool="local_shell" json="{\"type\":\"exec\",\"command\":[\"pwd\"]}" observation="/w"
        tool="shell" json="{\"commands\":[\"false\"]}" ERROR
        thought="No."
        "#,
    );
}

#[test]
fn gemini_contents_with_and_without_ids() {
    let pending = check(
        "gemini",
        r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"ls"}]}],"contents":[
            {"role":"user","parts":[{"text":"This is the Gemini CLI. We are setting up the context for our chat."}]},
            {"role":"user","parts":[{"text":"Fix it"},{"inlineData":{"mimeType":"image/png","data":"iVBOR"}}]},
            {"role":"model","parts":[{"text":"Where is it?","thought":true},{"text":"I look."},
                {"functionCall":{"name":"ls","args":{"path":"."}},"thoughtSignature":"EqQB"},
                {"functionCall":{"name":"cat","args":{"path":"a"}}}]},
            {"role":"user","parts":[
                {"functionResponse":{"id":"cat-1-7f","name":"cat","response":{"error":"no such file"}}},
                {"functionResponse":{"id":"ls-0-7f","name":"ls","response":{"output":"b.py"}}}]},
            {"role":"model","parts":[{"functionCall":{"id":"c3","name":"cat","args":{"path":"b.py"}}}]},
            {"role":"function","parts":[{"functionResponse":{"id":"c3","name":"cat","response":{"result":"x = 1"}}}]},
            {"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1/0"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"ZeroDivisionError"}}]},
            {"role":"model","parts":[{"function_call":{"name":"ls","args":{}}}]},
            {"role":"user","parts":[{"function_response":{"name":"ls","response":{"files":2}}},{"text":"Hurry"}]},
            {"role":"model","parts":[{"text":"Done."}]},
            {"role":"user","parts":[{"text":"Thanks"}]},
            {"role":"model","parts":[{"functionCall":{"name":"ls","args":{}}}]}]}"#,
        r#"
        user="Fix it" thought="Where is it?\n\nI look." tool="ls" json="{\"path\":\".\"}" observation="b.py"
        tool="cat" json="{\"path\":\"a\"}" observation="no such file" ERROR
        tool="cat" json="{\"path\":\"b.py\"}" observation="x = 1"
        tool="code_execution" text="1/0" observation="ZeroDivisionError" ERROR
        tool="ls" json="{}" observation="{\"files\":2}"
        user="Hurry" thought="Done."
        "#,
    );
    assert_eq!((pending.user_input.as_str(), pending.calls.len()), ("Thanks", 1));
}

#[test]
fn a_conversation_that_the_provider_keeps_goes_on_from_the_answer_we_saw() {
    let dialect = by_id("openai-responses").expect("a dialect");
    let first = check("openai-responses", r#"{"input":"Fix it"}"#, "");
    assert_eq!(first.said_since, "Fix it");
    let calls = vec![ToolCall::new("c1", "shell", &RunInput::Text("{}".into()))];
    let pending = first.with_reply(Reply { thought: "I look.".into(), calls, items: vec![] });
    let body = r#"{"previous_response_id":"resp_1","input":[
        {"type":"function_call_output","call_id":"c1","output":"a.py"},
        {"type":"function_call_output","call_id":"lost","output":"b.py"}]}"#;
    let request = ParsedRequest::parse(dialect, PATH, body.as_bytes()).expect("a body");
    assert!(request.is_server_side_history());
    let new = extract(&request, 0, &pending);
    insta::assert_snapshot!(shown(&new.steps), @r#"
    user="Fix it" thought="I look." tool="shell" text="{}" observation="a.py"
    observation="b.py"
    "#);
    assert_eq!(
        PendingTurn { emitted: EmittedSteps::default(), opening: 0, ..new.pending },
        PendingTurn::default()
    );
}

/// References the latest response by the ids of its items, at any position in the history.
#[test]
fn what_a_request_only_refers_to_is_taken_from_the_answer_we_saw() {
    let reply = |number: u32, has_call: bool| {
        let id = format!("call_000{number}");
        let call = ToolCall::new(&id, "search", &RunInput::Text(format!("q{number}").into()));
        let calls = if has_call { vec![call] } else { vec![] };
        let items = vec![format!("msg_{number}"), format!("fc_{number}")];
        Some(Reply { thought: format!("Look {number}."), calls, items })
    };
    let has_item_references = |item: &str| format!(r#"{{"type":"item_reference","id":"{item}"}}"#);
    let tells = |number: u32| {
        format!(
            r#"{{"type":"function_call_output","call_id":"call_000{number}","output":"o{number}"}}"#
        )
    };
    let task = r#"{"role":"user","content":"go"}"#.to_owned();
    let says = r#"{"role":"user","content":"And now?"}"#.to_owned();
    let turn = |n: u32| {
        vec![
            has_item_references(&format!("msg_{n}")),
            has_item_references(&format!("fc_{n}")),
            tells(n),
        ]
    };
    let appended = [
        vec![task.clone()],
        [vec![task.clone()], turn(1)].concat(),
        [vec![task.clone()], turn(1), turn(2)].concat(),
        // An answer without a call, and a person speaks.
        [vec![task.clone()], turn(1), turn(2), vec![has_item_references("msg_3"), says.clone()]]
            .concat(),
    ];
    // All items of the model come first, so the start of the history changes with every request.
    let gathered = [
        vec![task.clone()],
        vec![task.clone(), has_item_references("fc_1"), tells(1)],
        vec![
            task.clone(),
            has_item_references("fc_1"),
            has_item_references("fc_2"),
            tells(1),
            tells(2),
        ],
        vec![
            task,
            has_item_references("fc_1"),
            has_item_references("fc_2"),
            has_item_references("fc_3"),
            tells(1),
            tells(2),
            tells(3),
        ],
    ];
    let story = |requests: &[Vec<String>], calls: u32| {
        let dialect = by_id("openai-responses").expect("a dialect");
        let (mut hashes, mut pending, mut story) =
            (Vec::new(), PendingTurn::default(), String::new());
        for (number, request) in (0..).zip(requests) {
            let body = format!(r#"{{"input":[{}]}}"#, request.join(","));
            let request = ParsedRequest::parse(dialect, PATH, body.as_bytes()).expect("a body");
            assert_eq!(request.has_item_references(), number > 0);
            let before = pending.after_reply(reply(number, number <= calls));
            let new = advance(&request, Continuity::between(&hashes, &request.hashes()), &before);
            story = format!("{story}{}\n", shown(&new.steps));
            (hashes, pending) = (request.hashes(), new.pending);
        }
        story
    };
    insta::assert_snapshot!(story(&appended, 2), @r#"

    user="go" thought="Look 1." tool="search" text="q1" observation="o1"
    thought="Look 2." tool="search" text="q2" observation="o2"
    thought="Look 3."
    "#);
    insta::assert_snapshot!(story(&gathered, 3), @r#"

    user="go" thought="Look 1." tool="search" text="q1" observation="o1"
    thought="Look 2." tool="search" text="q2" observation="o2"
    thought="Look 3." tool="search" text="q3" observation="o3"
    "#);
}

#[test]
fn only_what_a_protocol_knows_says_that_the_conversation_is_kept() {
    let cases = [
        ("openai-responses", r#"{"input":"a"}"#, (true, false)),
        ("openai-responses", r#"{"input":"a","store":null}"#, (true, false)),
        ("openai-responses", r#"{"input":"a","store":false}"#, (false, false)),
        ("openai-responses", r#"{"input":"a","previous_response_id":null}"#, (true, false)),
        ("openai-responses", r#"{"input":"a","previous_response_id":"r"}"#, (true, true)),
        ("openai-responses", r#"{"input":"a","conversation":{"id":"c"}}"#, (true, true)),
        (
            "openai-chat",
            r#"{"messages":[],"conversation":"c","thread":{"previous_message_id":"m"}}"#,
            (false, false),
        ),
        ("anthropic", r#"{"messages":[],"thread":{"type":"create"}}"#, (true, false)),
        (
            "anthropic",
            r#"{"messages":[],"thread":{"type":"continue","previous_message_id":"m"}}"#,
            (true, true),
        ),
        ("anthropic", r#"{"messages":[],"conversation":"c"}"#, (false, false)),
        ("gemini", r#"{"contents":[],"conversation":"c","store":true}"#, (false, false)),
    ];
    for (dialect, body, expected) in cases {
        let request =
            ParsedRequest::parse(by_id(dialect).expect("a dialect"), PATH, body.as_bytes())
                .expect("a body");
        assert_eq!(
            (request.provider_stores_response(), request.is_server_side_history()),
            expected,
            "{dialect} {body}"
        );
    }
}

#[test]
fn the_task_is_the_first_thing_a_person_said() {
    let cases = [
        (
            "anthropic",
            r#"{"messages":[{"role":"user","content":"<system-reminder>x</system-reminder>"},{"role":"user","content":" Fix it "}]}"#,
            Some("Fix it"),
        ),
        (
            "openai-chat",
            r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"Fix it"}]}"#,
            Some("Fix it"),
        ),
        ("openai-responses", r#"{"input":"Fix it"}"#, Some("Fix it")),
        (
            "openai-responses",
            r#"{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}"#,
            None,
        ),
        ("gemini", r#"{"contents":[{"parts":[{"text":"Fix it"}]}]}"#, Some("Fix it")),
        ("anthropic", r#"{"messages":null}"#, None),
        ("anthropic", "{}", None),
    ];
    for (dialect, body, expected) in cases {
        let request =
            ParsedRequest::parse(by_id(dialect).expect("a dialect"), PATH, body.as_bytes())
                .expect("a body");
        assert_eq!(request.task().as_deref(), expected, "{body}");
    }
}

#[test]
fn the_outside_of_a_request_is_read() {
    let dialect = by_id("anthropic").expect("a dialect");
    let body = br#" {"stream" : true, "messages": [], "model":"a/\u0062", "x":{"model":"no"}} "#;
    let request = ParsedRequest::parse(dialect, PATH, body).expect("a body");
    assert_eq!((request.model().as_ref(), request.has_tools), ("a/b", false));
    let gemini = by_id("gemini").expect("a dialect");
    let request = ParsedRequest::parse(gemini, PATH, body).expect("a body");
    assert_eq!(request.model(), "m");
    for (tools, expected) in [("[]", false), ("null", false), (r#"[{"name":"f"}]"#, true)] {
        let body = format!(r#"{{"tools":{tools}}}"#);
        let request = ParsedRequest::parse(dialect, PATH, body.as_bytes()).expect("a body");
        assert_eq!(request.has_tools, expected, "{tools}");
    }
    for broken in ["", "[]", "{", r#"{"messages":[{]}"#, r#"{"a":1} x"#, r#"{"a" 1}"#, r#"{"a":}"#]
    {
        assert!(ParsedRequest::parse(dialect, PATH, broken.as_bytes()).is_err(), "{broken}");
    }
    let error = ParsedRequest::parse(dialect, PATH, b"{\"messages\":[1").expect_err("cut short");
    assert_eq!(
        error.to_string(),
        "the body is no JSON from byte 14 on; send it as one whole object"
    );
}

/// The steps of one request after another, each written as its messages.
#[track_caller]
fn check_requests(requests: &[&[&str]]) -> String {
    let (mut told, mut pending, mut hashes) = (String::new(), PendingTurn::default(), Vec::new());
    for request in requests {
        let body = format!(r#"{{"messages":[{}]}}"#, request.join(","));
        let request =
            ParsedRequest::parse(by_id("anthropic").expect("a dialect"), PATH, body.as_bytes())
                .expect("a body");
        let continuity = Continuity::between(&hashes, &request.hashes());
        let new = advance(&request, continuity, &pending).clone_owned();
        let _ = writeln!(told, "{continuity:?}\n{}", shown(&new.steps));
        (pending, hashes) = (new.pending, request.hashes());
    }
    told
}

const TASK: &str = r#"{"role":"user","content":"go"}"#;
const ASKS: [&str; 2] = [
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}]}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"ls","input":{}}]}"#,
];
const TELLS: [&str; 2] = [
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"a"}]}"#,
];

#[test]
fn a_step_is_given_once_whatever_the_client_rewrites() {
    let reminded = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"},{"type":"text","text":"<system-reminder>r</system-reminder>"}]}"#;
    let cleared = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[cleared]"}]}"#;
    let summary = r#"{"role":"user","content":"A summary of what was before."}"#;
    let story = check_requests(&[
        &[TASK],
        // A reminder that is taken back in the next request.
        &[TASK, ASKS[0], reminded],
        &[TASK, ASKS[0], TELLS[0], ASKS[1], TELLS[1]],
        // The same again.
        &[TASK, ASKS[0], TELLS[0], ASKS[1], TELLS[1]],
        // An old answer that is cleared.
        &[TASK, ASKS[0], cleared, ASKS[1], TELLS[1]],
        // A new, shorter history that keeps the last turn, and then goes on.
        &[summary, ASKS[1], TELLS[1]],
        &[summary, ASKS[1], TELLS[1], r#"{"role":"assistant","content":"Done."}"#, TASK],
    ]);
    insta::assert_snapshot!(story, @r#"
    First

    Continues { from: 1 }
    user="go" tool="ls" json="{}" observation="a"
    Edited { at: 2 }
    tool="ls" json="{}" observation="a"
    Retry

    Edited { at: 2 }

    Compacted

    Continues { from: 3 }
    user="A summary of what was before." thought="Done."
    "#);
}

/// The last user message changes with every request, for example a note with the current time.
#[test]
fn what_is_done_again_is_a_step_again_though_the_end_is_rewritten() {
    let says = r#"{"role":"assistant","content":"I look again."}"#;
    let told = r#"{"role":"user","content":"nothing"}"#;
    let note = |at: u32| format!(r#"{{"role":"user","content":"It is {at} o'clock."}}"#);
    let mut history = vec![TASK.to_owned()];
    let mut requests = vec![];
    for at in 0..4 {
        requests.push([history.clone(), vec![note(at)]].concat());
        history.extend([says, told].map(str::to_owned));
    }
    let requests: Vec<Vec<&str>> =
        requests.iter().map(|request| request.iter().map(String::as_str).collect()).collect();
    let requests: Vec<&[&str]> = requests.iter().map(Vec::as_slice).collect();
    let story = check_requests(&requests);
    assert_eq!(story.matches("thought=\"I look again.\"").count(), 3, "{story}");
}

#[test]
fn calls_that_are_written_into_the_text_are_calls() {
    let text_tool_calls = |said: &str, back: &str| {
        let said = format!(r#"{{"role":"assistant","content":{}}}"#, crate::json::quoted(said));
        let back = format!(r#"{{"role":"user","content":{}}}"#, crate::json::quoted(back));
        check_requests(&[&[TASK, &said, &back]])
    };
    let story = [
        text_tool_calls(
            "Thought: I search.\nAction: search\nAction Input: {'query': 'x'}",
            "Observation: no match",
        ),
        text_tool_calls(
            "THOUGHT: I search.\n\n```mswea_bash_command\ngrep x .\n```",
            "<returncode>1</returncode>\n<output>\nnone\n</output>",
        ),
        text_tool_calls(
            "Thought: I search.\n<code>\nprint(search('x'))\n</code>\nCalling tools:\n[{'id': 'call_2', 'type': 'function', 'function': {'name': 'python_interpreter', 'arguments': 'print(1)'}}]",
            "Observation:\nExecution logs:\nno match",
        ),
        text_tool_calls(
            "I search.\nCalling tools:\n[{'id': 'call_17', 'type': 'function', 'function': {'name': 'search', 'arguments': {'query': 'x'}}}]",
            "Observation:\nno match",
        ),
        text_tool_calls("I have an observation of my own.", "Observation: mine"),
        text_tool_calls("Which of them?", "the first"),
    ];
    insta::assert_snapshot!(story.concat(), @r#"
    First
    user="go" thought="I search." tool="search" text="{'query': 'x'}" observation="no match"
    First
    user="go" thought="I search." tool="bash" text="grep x ." observation="none" ERROR
    First
    user="go" thought="I search." tool="python" text="print(search('x'))" observation="Execution logs:\nno match"
    First
    user="go" thought="I search." tool="search" text="{'query': 'x'}" observation="no match"
    First
    user="go" thought="I have an observation of my own."
    First
    user="go" thought="Which of them?"
    "#);
}
