//! `evaluate`, the walk, retrieval and scores, through the whole server.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::test_server::{OPERATOR, Trial};
use rb_server::config::RawConfig;

/// Returns the steps of an agent that repeats one failing command.
fn looping(count: usize) -> Vec<Value> {
    let step = json!({
        "thought": "The command still fails, let me run the same command again.",
        "action": "bash",
        "action_input": "pytest tests/test_cache.py",
        "observation": "1 failed: AssertionError in test_cache",
        "observation_is_error": true,
    });
    vec![step; count]
}

#[tokio::test]
async fn a_loop_is_steered_with_ever_new_words() {
    let trial = Trial::new().await;
    let mut texts = Vec::new();
    for count in 1..12 {
        let body = json!({"model": "", "task_profile": "coding", "steps": looping(count)});
        let reply = trial.post("/monitors/evaluate", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        assert_eq!(reply.at("/step_count"), json!(count));
        let again = trial.post("/v1/monitors/evaluate", &trial.acme, &body).await;
        assert_eq!(again.json, reply.json, "the same request has the same reply");
        if reply.at("/inject") == json!(true) {
            texts.push(reply.at("/intervention_text").as_str().unwrap().to_owned());
            assert_eq!(reply.at("/injection_path"), "monitor");
            assert_eq!(reply.at("/failure_type"), "semantic_loop");
            assert_eq!(reply.at("/fired/0"), reply.at("/intervention_source"));
            assert!(reply.at("/evidence/0/steps/0").is_u64(), "{}", reply.text);
        }
    }
    assert!(texts.len() >= 5, "{texts:?}");
    let mut different = texts.clone();
    different.dedup();
    assert_eq!(different.len(), texts.len(), "the SDKs drop a text that equals the last");
}

#[tokio::test]
async fn what_is_remembered_of_a_trace_never_changes_the_verdict() {
    let (growing, fresh) = (Trial::new().await, Trial::new().await);
    let steps = long_steps(30);
    for suite in ["semantic", "both"] {
        let mut last = Value::Null;
        for count in 1..=30 {
            let body = json!({"steps": &steps[..count], "suite": suite});
            last = growing.post("/monitors/evaluate", &growing.acme, &body).await.json;
        }
        let body = json!({"steps": steps, "suite": suite});
        let whole = fresh.post("/monitors/evaluate", &fresh.acme, &body).await.json;
        assert_eq!(unmarked(last), unmarked(whole), "{suite}");
    }
}

fn long_steps(count: usize) -> Vec<Value> {
    let long = "x and y ".repeat(300);
    (0..count)
        .map(|at| json!({"thought": format!("{at} {long}"), "action": "bash", "action_input": {"command": "make"}, "observation": "ok"}))
        .collect()
}

/// Returns a verdict without its mark, which differs between processes.
fn unmarked(mut verdict: Value) -> Value {
    let mark = verdict.as_object_mut().unwrap().remove("mark");
    assert!(mark.is_some_and(|mark| mark.is_string()), "{verdict}");
    verdict
}

#[tokio::test]
async fn steps_after_a_mark_are_judged_as_the_whole_run_would_be() {
    let (trial, fresh) = (Trial::new().await, Trial::new().await);
    let steps = long_steps(12);
    let mut mark = Value::Null;
    // One step at a time, then three at once, then none.
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 6), (6, 7), (7, 7), (7, 12)] {
        let mut body = json!({"steps": &steps[from..to], "suite": "both"});
        if from > 0 {
            body["after_mark"] = mark;
        }
        let reply = trial.post("/monitors/evaluate", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        let again = trial.post("/monitors/evaluate", &trial.acme, &body).await;
        assert_eq!(again.json, reply.json, "the same request has the same reply");
        mark = reply.at("/mark");
        let whole = json!({"steps": &steps[..to], "suite": "both"});
        let whole = fresh.post("/monitors/evaluate", &fresh.acme, &whole).await.json;
        assert_eq!(unmarked(reply.json), unmarked(whole), "{from} to {to}");
    }
    // A request with the whole run returns the same mark, and can continue from it.
    let whole = json!({"steps": &steps, "suite": "both"});
    let whole = trial.post("/monitors/evaluate", &trial.acme, &whole).await;
    assert_eq!(whole.at("/mark"), mark);
}

#[tokio::test]
async fn a_mark_that_is_not_known_is_a_conflict() {
    let trial = Trial::new().await;
    let steps = long_steps(3);
    let body = json!({"steps": &steps[..2]});
    let mark = trial.post("/monitors/evaluate", &trial.acme, &body).await.at("/mark");
    let asked = |mark: Value, suite: &str| json!({"steps": &steps[2..], "after_mark": mark, "suite": suite});
    let cases = [
        (&trial.globex, asked(mark.clone(), "semantic"), "another organisation's"),
        (&trial.acme, asked(mark.clone(), "both"), "judged in another way"),
        (&trial.acme, asked(json!("no mark"), "semantic"), "no mark at all"),
        (&trial.acme, asked(json!(""), "semantic"), "empty"),
        (&trial.acme, asked(json!("0"), "semantic"), "nowhere"),
    ];
    for (key, body, what) in cases {
        let reply = trial.post("/monitors/evaluate", key, &body).await;
        assert_eq!(reply.status, StatusCode::CONFLICT, "{what}: {}", reply.text);
    }
    let reply = trial.post("/monitors/evaluate", &trial.acme, &asked(mark, "semantic")).await;
    assert_eq!(reply.at("/step_count"), 3, "nobody has used it up: {}", reply.text);
}

#[tokio::test]
async fn evaluate_takes_what_the_sdks_send_and_says_what_it_did_not_take() {
    let trial = Trial::new().await;
    let cases = [
        (json!({}), "/inject", json!(false)),
        (json!({"steps": null, "weights": null, "task_profile": null}), "/step_count", json!(0)),
        (json!({"steps": [{}], "task_profile": "unheard-of"}), "/step_count", json!(1)),
        (
            json!({"steps": looping(2), "weights": {"sterak": 1.0}}),
            "/notes/0",
            json!("unknown monitor: `sterak`; its weight is ignored"),
        ),
        (
            json!({"steps": looping(2), "weights": {"streak": -3.0}}),
            "/notes/0",
            json!("the weight of `streak` must be between 0 and 1; -3 was changed to 0"),
        ),
        (json!({"steps": looping(9), "suite": "heuristic"}), "/fired/0", json!("streak")),
        (
            json!({"steps": [{"thought": "x".repeat(64_001)}]}),
            "/notes/0",
            json!("`thought` is cut after 64000 characters"),
        ),
        (
            json!({"steps": [{"action": null, "action_input": [1], "observation": null}]}),
            "/composite",
            json!(0.0),
        ),
    ];
    for (body, pointer, expected) in cases {
        let reply = trial.post("/monitors/evaluate", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        assert_eq!(reply.at(pointer), expected, "{}", reply.text);
    }
    let refused = [
        (json!({"steps": [{}, {"thought": 5}]}), json!(["body", "steps", 1, "thought"])),
        (json!({"steps": {}}), json!(["body", "steps"])),
        (json!({"suite": "third"}), json!(["body", "suite"])),
        (json!({"steps": vec![json!({}); 2_001]}), json!(["body", "steps"])),
    ];
    for (body, place) in refused {
        let reply = trial.post("/monitors/evaluate", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text);
        assert_eq!(reply.at("/detail/0/loc"), place, "{}", reply.text);
    }
    assert_eq!(
        trial.post("/score", &trial.acme, &json!({"text": ""})).await.at("/difficulty"),
        json!(0.5)
    );
}

/// Returns a step for `walk`.
fn walked(index: u32) -> Value {
    let mut step = looping(1).remove(0);
    step["step_index"] = json!(index);
    step["tokens"] = json!(100);
    step["is_error"] = json!(true);
    step
}

#[tokio::test]
async fn a_walk_steers_and_can_be_repeated_and_resumed() {
    let trial = Trial::new().await;
    let begin = json!({"step_index": 0, "task": "fix the cache", "model": "claude-sonnet-4-5"});
    let first = trial.post("/monitor/runs/w/1/walk", &trial.acme, &begin).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text);
    assert_eq!((first.at("/state"), first.at("/decision")), (json!("INIT"), json!("go_on")));
    assert_eq!(first.at("/guidance"), Value::Null, "standing rules are off");
    assert_eq!(first.at("/scores"), json!({}), "nothing was done yet");

    let mut replies = vec![first];
    for index in 1..10 {
        let path = "/v1/monitor/runs/w/1/walk";
        replies.push(trial.post(path, &trial.acme, &walked(index)).await);
    }
    let steered: Vec<_> =
        replies[1..].iter().filter(|reply| reply.at("/decision") == "steer").collect();
    assert!(steered.len() >= 2, "{:?}", replies.last());
    assert!(
        steered.iter().all(|reply| reply
            .at("/guidance")
            .as_str()
            .unwrap()
            .starts_with("[REASONBLOCKS]"))
    );
    assert_eq!(replies[9].at("/tokens_used"), json!(900));

    // All steps are sent again, to the running server and to a restarted one: the latest is in memory, the others
    // are rebuilt.
    let restarted = trial.restarted().await;
    for server in [&trial, &restarted] {
        for (index, before) in replies.iter().enumerate() {
            let body =
                if index == 0 { begin.clone() } else { walked(u32::try_from(index).unwrap()) };
            let mut again = server.post("/monitor/runs/w/1/walk", &trial.acme, &body).await.json;
            assert_eq!(again["repeated"], json!(true), "{again}");
            again["repeated"] = json!(false);
            assert_eq!(again, before.json, "step {index}");
        }
    }
    // Both servers continue in the same way.
    let next = trial.post("/monitor/runs/w/1/walk", &trial.acme, &walked(10)).await;
    let other = restarted.post("/monitor/runs/w/1/walk", &trial.acme, &walked(10)).await;
    assert_eq!(next.at("/guidance"), other.at("/guidance"));

    let stored = trial.get("/monitor/runs/w/1", &trial.acme).await;
    assert_eq!(stored.at("/task"), "fix the cache");
    assert_eq!(stored.at("/steps").as_array().unwrap().len(), 11);
    trial.post("/monitor/runs/w/1/finish", &trial.acme, &json!({"outcome": "success"})).await;
    let over = trial.post("/monitor/runs/w/1/walk", &trial.acme, &walked(11)).await;
    assert_eq!(over.status, StatusCode::CONFLICT, "{}", over.text);
}

#[tokio::test]
async fn a_walk_heeds_budget_and_routes_of_the_run() {
    let trial = Trial::new().await;
    let begin = json!({"step_index": 0, "token_budget": 250});
    trial.post("/monitor/runs/b/walk", &trial.acme, &begin).await;
    let mut last = Value::Null;
    for index in 1..=3 {
        last = trial.post("/monitor/runs/b/walk", &trial.acme, &walked(index)).await.json;
    }
    assert_eq!(last["decision"], "stop");
    assert_eq!(last["stop"], json!({"reason": "token_budget", "used": 300, "limit": 250}));
    for (body, place) in [
        (
            json!({"step_index": 0, "model_routing": {"FASTER": "m"}}),
            json!(["body", "model_routing"]),
        ),
        (json!({"step_index": 10_001}), json!(["body", "step_index"])),
        (json!({}), json!(["body"])),
    ] {
        let reply = trial.post("/monitor/runs/new/walk", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text);
        assert_eq!(reply.at("/detail/0/loc"), place, "{}", reply.text);
    }
}

#[tokio::test]
async fn posts_of_one_run_take_turns() {
    let trial = std::sync::Arc::new(Trial::new().await);
    let key = trial.acme.clone();
    let posts = (0..20).map(|index| {
        let (trial, key) = (std::sync::Arc::clone(&trial), key.clone());
        tokio::spawn(async move {
            trial.post("/monitor/runs/t/steps", &key, &walked(index)).await.status
        })
    });
    for post in posts.collect::<Vec<_>>() {
        assert_eq!(post.await.unwrap(), StatusCode::OK);
    }
    let stored = trial.get("/monitor/runs/t", &key).await;
    assert_eq!(stored.at("/steps").as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn patterns_are_found_by_whoever_may_see_them() {
    let trial = Trial::new().await;
    let own = json!({
        "tier": "e1",
        "pattern_id": "expiry",
        "fields": {"situation": "session token expiration", "unlock": "Look at the clock skew first."},
    });
    let added = trial.post("/library/patterns", &trial.acme, &own).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text);
    let ids = |reply: &crate::test_server::Reply| super::field(&reply.at("/traces"), "pattern_id");
    let about = "session token expiration";
    let cases = [
        (&trial.acme, json!({"tier": "e1", "context": about, "top_k": 1}), vec!["expiry"]),
        (&trial.globex, json!({"tier": "e1", "context": about}), vec![]),
        (&trial.globex, json!({"tier": "e1", "context": about, "org_id": "acme"}), vec![]),
        (&trial.acme, json!({"tier": "e1", "context": "paint the fence"}), vec![]),
        (
            &trial.acme,
            json!({"level": "e2", "context": "The same assertion fails again after my fix.", "failure_type": "repeated_test_failure", "top_k": 1}),
            vec!["same-test-still-fails"],
        ),
        (
            &trial.acme,
            json!({"tier": "e2", "context": "The same assertion fails again after my fix.", "failure_type": "topic_drift"}),
            vec![],
        ),
        (&trial.acme, json!({"tier": "", "level": "", "context": about}), vec!["expiry"]),
    ];
    for (key, body, expected) in cases {
        let reply = trial.post("/traces/retrieve", key, &body).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        assert_eq!(ids(&reply), expected, "{body}");
        assert_eq!(reply.at("/over_cap"), json!(false));
    }
    let rules = trial
        .post(
            "/traces/retrieve",
            &trial.acme,
            &json!({"context": "", "tier": "e3", "level": "e3", "top_k": 32, "model": ""}),
        )
        .await;
    assert!(ids(&rules).len() >= 12);
    assert_eq!(rules.at("/traces/0/fields/pattern_id"), rules.at("/traces/0/pattern_id"));
    for body in [
        json!({}),
        json!({"context": "", "tier": "E1"}),
        json!({"context": "", "top_k": 0}),
        json!({"context": "", "top_k": 51}),
    ] {
        let reply = trial.post("/traces/retrieve", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
}

#[tokio::test]
async fn over_the_cap_nothing_is_looked_for_and_the_reply_says_so() {
    let trial = Trial::with(RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        intervention_cap: 1,
        ..RawConfig::default()
    })
    .await;
    let mut step = walked(0);
    step["injections"] = json!(["told"]);
    trial.post("/monitor/runs/c/steps", &trial.acme, &step).await;
    let asked = json!({"context": "", "tier": "e3"});
    let reply = trial.post("/traces/retrieve", &trial.acme, &asked).await;
    assert_eq!((reply.at("/traces"), reply.at("/over_cap")), (json!([]), json!(true)));
    assert_eq!(reply.headers["x-reasonblocks-over-cap"], "true");
    let other = trial.post("/traces/retrieve", &trial.globex, &asked).await;
    assert_eq!(other.at("/over_cap"), json!(false), "each organisation has its own allowance");
}
