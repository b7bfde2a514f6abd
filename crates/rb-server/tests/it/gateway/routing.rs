//! Models are replaced only in states with a configured model.

use super::Stage;
use super::dialects::{Dialect, obliging};
use super::upstream::{Act, Seen, answer};
use rb_server::config::RawConfig;

const STATES: [&str; 5] = ["FAST", "NORMAL", "SLOW", "SKIP", "INIT"];

fn config(init: &str, later: &str, switches_max: u32) -> RawConfig {
    let mut raw = super::patient();
    let route = |state: &str| if state == "INIT" { init } else { later };
    let routes = STATES.iter().map(|state| ((*state).to_owned(), route(state).to_owned()));
    raw.gateway.routing = routes.filter(|(_, model)| !model.is_empty()).collect();
    raw.gateway.routing_switches_max = switches_max;
    raw
}

fn models(stage: &Stage) -> Vec<String> {
    let model = |seen: &Seen| seen.json()["model"].as_str().unwrap_or_default().to_owned();
    stage.upstream.seen().iter().map(model).collect()
}

async fn play(stage: &Stage, mode: &str, calls: usize) {
    let dialect = Dialect::Anthropic;
    let headers = [("x-reasonblocks-run-id", "r"), ("x-reasonblocks-mode", mode)];
    for turns in 0..calls {
        let body = dialect.request("asked", &dialect.history(turns));
        assert_eq!(stage.post(dialect.path(), &headers, &body).await.status, 200);
        stage.app.gateway.flush().await;
    }
}

#[tokio::test]
async fn a_state_names_the_model_as_often_as_it_may() {
    let cases = [
        // Model of the first state, model of the others, allowed switches; upstream models.
        ("", "", 4, ["asked"; 3]),
        ("one", "", 4, ["one", "asked", "asked"]),
        ("one", "two", 4, ["one", "two", "two"]),
        ("one", "two", 0, ["one"; 3]),
        ("", "two", 1, ["asked", "two", "two"]),
        ("", "two", 0, ["asked"; 3]),
    ];
    for (init, later, switches_max, expected) in cases {
        let mut stage = Stage::with(config(init, later, switches_max), obliging).await;
        play(&stage, "steer", 2).await;
        stage.restart().await;
        let dialect = Dialect::Anthropic;
        let body = dialect.request("asked", &dialect.history(2));
        stage.post(dialect.path(), &[("x-reasonblocks-run-id", "r")], &body).await;
        assert_eq!(models(&stage), expected, "{init} {later} {switches_max}");
    }
}

#[tokio::test]
async fn a_model_in_the_url_changes_there() {
    let stage = Stage::with(config("one", "two", 4), obliging_any).await;
    let dialect = Dialect::Gemini;
    for turns in 0..2 {
        let body = dialect.request("", &dialect.history(turns));
        let got = stage.post(dialect.path(), &[("x-reasonblocks-run-id", "r")], &body).await;
        assert_eq!((got.status, got.text()), (200, dialect.body("served").to_string()));
    }
    let line = |seen: &Seen| seen.head.lines().next().unwrap_or_default().to_owned();
    let path =
        |model| format!("post /v1beta/models/{model}:streamgeneratecontent?alt=sse http/1.1");
    let lines: Vec<String> = stage.upstream.seen().iter().map(line).collect();
    assert_eq!(lines, ["one", "two"].map(path));
    let steps = stage.steps("r").await;
    let found: Vec<_> = steps
        .iter()
        .map(|step| (step.action.as_deref().unwrap_or_default(), step.tokens.total))
        .collect();
    assert_eq!(found, [("", 1_100), ("search", 1_100)]);
}

/// Answers every request with a complete Gemini response.
fn obliging_any(_: &Seen) -> Vec<Act> {
    let body = Dialect::Gemini.body("served").to_string();
    answer("200 OK", "application/json", body.as_bytes())
}

#[tokio::test]
async fn an_observed_run_keeps_its_model() {
    let stage = Stage::with(config("one", "two", 4), obliging).await;
    play(&stage, "observe", 3).await;
    assert_eq!(models(&stage), ["asked"; 3]);
}

#[tokio::test]
async fn a_model_that_is_refused_is_not_tried_again() {
    for status in ["400 Bad Request", "404 Not Found", "422 Unprocessable Content"] {
        let refuses = move |seen: &Seen| {
            if seen.json()["model"] == "two" {
                answer(status, "text/plain", b"no")
            } else {
                obliging(seen)
            }
        };
        let stage = Stage::with(config("", "two", 4), refuses).await;
        play(&stage, "steer", 4).await;
        assert_eq!(
            models(&stage),
            ["asked", "two", "asked", "asked", "asked"],
            "{status}: the agent never notices"
        );
    }
}
