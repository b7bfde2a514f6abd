//! One recorded trace through every integration: state, scores, fired monitors, signals, decisions and texts are equal.
//!
//! Integrations that only observe are compared with the monitors and the state machine; integrations that steer with a
//! run, whose monitors know which advice was shown. `python/tests/test_equality.py` compares the Python package with
//! the recorded result of the run, `e2e/equality/steered.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rb_engine::config::Engine;
use rb_engine::guidance::Retrieved;
use rb_engine::policy::fsm::{Fsm, Limits};
use rb_engine::run::record::Reply;
use rb_engine::run::{Assessment, MonitorSet, Run};
use rb_engine::step::{Input, Step};
use rb_runtime::retrieval::embedding;
use serde_json::{Value, json};

use crate::run;
use crate::server::Server;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/equality/trace.jsonl");
const STEERED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/equality/steered.json");
const MODEL: &str = "claude-sonnet-4-5";

/// The recorded run.
struct Trace {
    task: String,
    steps: Vec<RecordedStep>,
}

struct RecordedStep {
    raw: Value,
    thought: String,
    action: Option<(String, String)>,
    observation: String,
    is_error: bool,
}

impl Trace {
    fn read() -> Self {
        let run: Value =
            serde_json::from_str(&fs::read_to_string(TRACE).expect("a trace")).expect("JSON");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let step = |raw: &Value| RecordedStep {
            thought: text(&raw["thought"]),
            action: raw["action"]
                .as_str()
                .map(|tool| (tool.to_owned(), raw["action_input"].to_string())),
            observation: text(&raw["observation"]),
            is_error: raw["is_error"] == true,
            raw: raw.clone(),
        };
        let steps = run["steps"].as_array().expect("steps").iter().map(step).collect();
        Self { task: text(&run["task"]), steps }
    }
}

impl RecordedStep {
    fn step(&self) -> Step<'_> {
        let step = Step::thought(&self.thought).with_error(self.is_error);
        match &self.action {
            Some((tool, input)) => step.with_action(tool, Input::Structured(input)),
            None => step,
        }
        .with_observation(&self.observation)
    }

    /// Fields of the step as the API takes them.
    fn fields(&self) -> Value {
        let mut fields = self.raw.clone();
        if fields.get("is_error").is_none() {
            fields["is_error"] = json!(false);
        }
        fields
    }
}

fn engine() -> Arc<Engine> {
    Arc::new(Engine::default().with_embedder(embedding::builtin()))
}

fn assessed(state: &str, assessment: &Assessment) -> Value {
    let scores: BTreeMap<&str, f64> =
        assessment.readings.iter().map(|reading| (reading.monitor.id, reading.score)).collect();
    let ids = |readings: &mut dyn Iterator<Item = &rb_engine::run::Reading>| {
        readings.map(|reading| reading.monitor.id).collect::<Vec<_>>()
    };
    json!({
        "state": state,
        "scores": scores,
        "composite": assessment.composite,
        "fired": ids(&mut assessment.fired()),
        "signals": ids(&mut assessment.signals()),
    })
}

/// Result of the monitors and the state machine, without guidance.
fn observed(trace: &Trace) -> Vec<Value> {
    let mut monitors = MonitorSet::new(&engine(), &trace.task);
    let mut fsm = Fsm::new(Limits::default());
    let step = |step: &RecordedStep| {
        let assessment = monitors.observe(&step.step());
        assessed(fsm.observe(assessment.difficulty).name(), &assessment)
    };
    trace.steps.iter().map(step).collect()
}

/// Result of a steered run. The first model call has index 0, so steps are counted from 1.
fn steered(trace: &Trace) -> Vec<Value> {
    let mut run = Run::new(engine(), &trace.task);
    run.set_first_step_index(1);
    let first = run.decide(&[], MODEL);
    let _ = run.record(first, Reply::default());
    let step = |step: &RecordedStep| {
        let pre_call = run.before_model(&[step.step()]);
        let plan = run.plan(pre_call, Retrieved::NONE, MODEL);
        let mut result = assessed(plan.pre_call().state.name(), &plan.pre_call().assessment);
        result["guidance"] =
            json!(plan.fragment.as_ref().map(rb_engine::guidance::Fragment::as_str));
        result["decision"] = json!(if plan.fragment.is_some() { "steer" } else { "go_on" });
        result["texts"] = json!(run.record(plan, Reply::default()).intervention_texts);
        result
    };
    trace.steps.iter().map(step).collect()
}

/// Compares the fields that an integration has, step by step.
#[track_caller]
fn same(integration: &str, fields: &[&str], expected: &[Value], found: &[Value]) {
    assert_eq!(found.len(), expected.len(), "{integration}: steps");
    for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
        for field in fields {
            assert_eq!(found[field], expected[field], "{integration}: `{field}` of step {at}");
        }
    }
}

const ALL: [&str; 5] = ["state", "scores", "composite", "fired", "signals"];

/// A stored step in the form of the reference.
fn stored(row: &Value) -> Value {
    json!({
        "state": row["state"],
        "scores": row["scores"],
        "composite": row["total_score"],
        "fired": row["fired"],
        "signals": row["signals"],
        "texts": row["intervention_texts"],
    })
}

fn stored_steps(server: &Server, run_id: &str, count: usize) -> Vec<Value> {
    let run = server.run(run_id, count);
    run["steps"].as_array().expect("steps").iter().map(stored).collect()
}

/// States, composites and marks of a page with one run.
fn shown(page: &str) -> Vec<Value> {
    let between = |text: &str, start: &str, end: &str| {
        let rest = text.split(start).nth(1).unwrap_or_default();
        rest.split(end).next().unwrap_or_default().trim().to_owned()
    };
    let marks = |text: &str, class: &str| -> Vec<String> {
        let start = format!("<span class=\"mark {class}\">");
        let marks = text.split(start.as_str()).skip(1);
        marks.map(|rest| rest.split('<').next().unwrap_or_default().to_owned()).collect()
    };
    let step = |step: &str| {
        let numbers = between(step, "<p class=\"numbers\">", "</p>");
        json!({
            "state": between(&numbers, "state ", " ·"),
            "composite": between(&numbers, "composite ", " "),
            "fired": marks(step, "hot"),
            "signals": marks(step, "signal"),
        })
    };
    page.split("<details class=\"step").skip(1).map(step).collect()
}

/// The reference as a page shows it: with two decimals.
fn as_shown(expected: &[Value]) -> Vec<Value> {
    let shown = |step: &Value| {
        let mut step = step.clone();
        step["composite"] = json!(format!("{:.2}", step["composite"].as_f64().expect("a number")));
        step
    };
    expected.iter().map(shown).collect()
}

/// Steps as an integration without guidance reports them.
#[test]
fn observing_integrations_agree() {
    let trace = Trace::read();
    let expected = observed(&trace);
    for (field, count) in [("fired", 3), ("signals", 3)] {
        let found: usize =
            expected.iter().map(|step| step[field].as_array().map_or(0, Vec::len)).sum();
        assert!(found >= count, "the trace has {found} {field}");
    }

    let output = run(&["check", "--json", TRACE], b"");
    let checked: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let steps: Vec<Value> = checked["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| {
            let mut step = step.clone();
            step["state"] = step["fsm_state"].clone();
            step
        })
        .collect();
    same("rb check", &ALL, &expected, &steps);

    let page = run(&["report", TRACE, "-o", "-"], b"");
    let shown_fields = ["state", "composite", "fired", "signals"];
    let page = String::from_utf8(page.stdout).expect("UTF-8");
    same("rb report", &shown_fields, &as_shown(&expected), &shown(&page));

    let server = Server::start(&[]);
    server.ask("POST", "/v1/monitor/import", Some(&fs::read_to_string(TRACE).expect("a trace")));
    same("import", &ALL, &expected, &stored_steps(&server, "equality", expected.len()));
    let page = server.page("/ui/run?id=equality");
    same("dashboard", &shown_fields, &as_shown(&expected), &shown(&page));

    let start = json!({"run_id": "told", "task": trace.task}).to_string();
    server.ask("POST", "/v1/monitor/runs", Some(&start));
    let mut replies = Vec::new();
    for (at, step) in trace.steps.iter().enumerate() {
        let mut body = step.fields();
        body["step_index"] = json!(at);
        let mut reply = server.ask("POST", "/v1/monitor/runs/told/steps", Some(&body.to_string()));
        reply["composite"] = reply["total_score"].clone();
        replies.push(reply);
    }
    same("telemetry", &["scores", "composite", "fired"], &expected, &replies);
    same("telemetry, stored", &ALL, &expected, &stored_steps(&server, "told", expected.len()));

    let body = |steps: Vec<Value>, after: Option<&Value>| {
        let mut body = json!({"task": trace.task, "steps": steps});
        if let Some(mark) = after {
            // Not the bytes of the growing trace, so that the reply is not a cached one.
            body["model"] = json!(MODEL);
            body["after_mark"] = mark.clone();
        }
        body.to_string()
    };
    let evaluated = |step: &RecordedStep| {
        let mut fields = step.fields();
        fields["observation_is_error"] = json!(step.is_error);
        fields
    };
    let steps: Vec<Value> = trace.steps.iter().map(evaluated).collect();
    let ask = |body: String| server.ask("POST", "/v1/monitors/evaluate", Some(&body));
    let fields = ["scores", "composite", "fired", "signals"];
    // `evaluate` replies with the scores of the suite that was asked for.
    let firing: Vec<Value> = expected.iter().map(firing_scores).collect();
    let whole = ask(body(steps.clone(), None));
    same("evaluate, whole trace", &fields, &firing[firing.len() - 1..], &[whole]);
    let growing: Vec<Value> =
        (1..=steps.len()).map(|to| ask(body(steps[..to].to_vec(), None))).collect();
    same("evaluate, growing trace", &fields, &firing, &growing);
    let mut marked: Vec<Value> = Vec::new();
    for step in &steps {
        let mark = marked.last().map_or(Value::Null, |reply| reply["mark"].clone());
        marked.push(ask(body(vec![step.clone()], Some(&mark))));
    }
    same("evaluate, after a mark", &fields, &firing, &marked);
    for (reply, step) in marked.iter().zip(&firing) {
        assert_eq!(reply["inject"] == true, step["fired"] != json!([]));
    }
}

fn firing_scores(step: &Value) -> Value {
    let mut step = step.clone();
    let scores = step["scores"].as_object_mut().expect("scores");
    scores.retain(|monitor, _| !rb_engine::policy::Policy::default().is_quiet(monitor));
    step
}

#[test]
fn steering_integrations_agree() {
    let trace = Trace::read();
    let expected = steered(&trace);
    let steers = expected.iter().filter(|step| step["decision"] == "steer").count();
    assert!((2..expected.len() / 2).contains(&steers), "{steers} decisions to steer");
    let recorded: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(STEERED).unwrap_or_else(|_| "[]".to_owned()))
            .expect("JSON");
    if recorded != expected {
        let fresh = format!("{}/steered.json", env!("CARGO_TARGET_TMPDIR"));
        let lines: Vec<String> = expected.iter().map(|step| format!(" {step}")).collect();
        fs::write(&fresh, format!("[\n{}\n]\n", lines.join(",\n"))).expect("written");
        panic!("e2e/equality/steered.json is stale; copy {fresh} over it");
    }

    let provider = Provider::start(&trace);
    let server = Server::start(&[("RB_UPSTREAM_ANTHROPIC", &provider.url)]);
    server.delete_patterns();
    let walked = walk(&server, &trace);
    let fields = [&ALL[..], &["decision", "guidance"]].concat();
    same("walk", &fields, &expected, &walked);
    let fields = [&ALL[..], &["texts"]].concat();
    same(
        "walk, stored",
        &fields,
        &expected,
        &stored_steps(&server, "walked", expected.len() + 1)[1..],
    );

    gateway(&server, &trace);
    // The provider's last answer is the closing step. No request follows it, so it gets no guidance.
    let (calls, closing) = expected.split_at(expected.len() - 1);
    let rows = stored_steps(&server, "proxied", expected.len() + 1);
    same("gateway", &fields, calls, &rows[1..=calls.len()]);
    same("gateway, closing step", &ALL, closing, &rows[expected.len()..]);
    let requests = provider.requests.lock().expect("requests").clone();
    for (at, (request, expected)) in requests[1..].iter().zip(&expected).enumerate() {
        for text in expected["texts"].as_array().into_iter().flatten() {
            let text = text.as_str().expect("a text");
            assert!(request.contains(&json_text(text)), "gateway: request after step {at}");
            assert!(!requests[at].contains(&json_text(text)), "gateway: request before step {at}");
        }
    }
}

/// A text as it appears inside a JSON string.
fn json_text(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn walk(server: &Server, trace: &Trace) -> Vec<Value> {
    let first = json!({"step_index": 0, "task": trace.task, "model": MODEL}).to_string();
    let ask = |body: &str| server.ask("POST", "/v1/monitor/runs/walked/walk", Some(body));
    let opening = ask(&first);
    assert_eq!((&opening["decision"], &opening["guidance"]), (&json!("go_on"), &Value::Null));
    let mut replies = Vec::new();
    for (at, step) in trace.steps.iter().enumerate() {
        let mut body = step.fields();
        body["step_index"] = json!(at + 1);
        body["model"] = json!(MODEL);
        replies.push(ask(&body.to_string()));
    }
    replies
}

/// Content of the assistant message that begins a step.
fn content(at: usize, step: &RecordedStep) -> Value {
    let mut content = vec![json!({"type": "text", "text": step.thought})];
    if let Some((tool, input)) = &step.action {
        let input: Value = serde_json::from_str(input).expect("JSON");
        content.push(
            json!({"type": "tool_use", "id": format!("call-{at}"), "name": tool, "input": input}),
        );
    }
    json!(content)
}

/// Plays an agent through the gateway: each request has the steps so far.
fn gateway(server: &Server, trace: &Trace) {
    let mut messages = vec![json!({"role": "user", "content": trace.task})];
    for (at, step) in trace.steps.iter().enumerate() {
        let body = json!({"model": MODEL, "max_tokens": 100, "messages": messages}).to_string();
        let headers =
            "x-reasonblocks-run-id: proxied\r\nx-reasonblocks-key: key\r\nx-api-key: sk\r\n";
        server.call("POST", "/anthropic/v1/messages", Some(&body), headers);
        messages.push(json!({"role": "assistant", "content": content(at, step)}));
        let mut result = json!({"type": "tool_result", "tool_use_id": format!("call-{at}"), "content": step.observation});
        if step.is_error {
            result["is_error"] = json!(true);
        }
        messages.push(json!({"role": "user", "content": [result]}));
    }
}

/// A provider that answers with the steps of the trace and records the requests.
struct Provider {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn start(trace: &Trace) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let steps = trace.steps.iter().enumerate();
        let answers: Vec<Value> = steps.map(|(at, step)| content(at, step)).collect();
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &answers, &seen);
            }
        });
        Self { url, requests }
    }
}

fn answer(mut stream: TcpStream, answers: &[Value], requests: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole body");
    let mut requests = requests.lock().expect("requests");
    let content = &answers[requests.len().min(answers.len() - 1)];
    requests.push(String::from_utf8(body).expect("UTF-8"));
    let is_last = content.as_array().is_some_and(|content| content.len() == 1);
    let message = json!({
        "id": "msg", "type": "message", "role": "assistant", "model": MODEL, "content": content,
        "stop_reason": if is_last { "end_turn" } else { "tool_use" }, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    });
    let body = message.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("a reader");
}
