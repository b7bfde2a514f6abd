//! Findings: stored, recalled, changed, forgotten.

use axum::http::StatusCode;
use serde_json::json;

use super::field;
use crate::test_server::{OPERATOR, Trial};

async fn stored(trial: &Trial, codebase: &str, content: &str, file_path: &str) -> String {
    let body = json!({"content": content, "file_path": file_path});
    let reply = trial.post(&format!("/findings/{codebase}"), &trial.acme, &body).await;
    assert_eq!((reply.status, reply.at("/stored")), (StatusCode::OK, json!(true)));
    reply.at("/finding_id").as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_was_stored_is_recalled_by_meaning() {
    let trial = Trial::new().await;
    let id = stored(&trial, "org/repo", "session tokens expire after an hour", "auth.py").await;
    stored(&trial, "org/repo", "the fence is painted green", "fence.py").await;
    for path in ["/findings/org/repo/search", "/v1/findings/org%2Frepo/search"] {
        let asked = json!({"query": "session expiry", "top_k": 5, "score_threshold": 0.25});
        let reply = trial.post(path, &trial.acme, &asked).await;
        assert_eq!(field(&reply.at("/results"), "finding_id"), [id.as_str()], "{}", reply.text);
        let found = reply.at("/results/0");
        assert_eq!(found["file_path"], "auth.py");
        assert_eq!(found["finding_type"], "note");
        assert_eq!(found["metadata"], json!({}));
        assert!(found["score"].as_f64().is_some_and(|score| (0.25..=1.0).contains(&score)));
    }
}

#[tokio::test]
async fn numbers_out_of_range_are_brought_into_it() {
    let trial = Trial::new().await;
    for content in ["session expiry", "session tokens expire", "paint the fence"] {
        stored(&trial, "c", content, "").await;
    }
    let cases = [
        (json!({"query": "session expiry", "top_k": 0, "score_threshold": -1}), 1),
        (json!({"query": "session expiry", "top_k": 1000, "score_threshold": -1}), 3),
        (json!({"query": "session expiry", "top_k": -5}), 1),
        (json!({"query": "session expiry", "score_threshold": 7.5}), 0),
        (json!({"query": "session expiry"}), 2),
        (json!({"query": "session expiry", "top_k": null, "score_threshold": null}), 2),
    ];
    for (asked, count) in cases {
        let reply = trial.post("/findings/c/search", &trial.acme, &asked).await;
        assert_eq!(reply.status, StatusCode::OK, "{asked}");
        assert_eq!(reply.at("/results").as_array().unwrap().len(), count, "{asked}");
    }
}

#[tokio::test]
async fn what_is_wrong_in_a_body_is_said_with_its_place() {
    let trial = Trial::new().await;
    let long = |count| "x".repeat(count);
    let cases = [
        ("/findings/c", json!({}), json!(["body"])),
        ("/findings/c", json!({"content": " "}), json!(["body", "content"])),
        ("/findings/c", json!({"content": long(8_001)}), json!(["body", "content"])),
        ("/findings/c", json!({"content": 1}), json!(["body", "content"])),
        (
            "/findings/c",
            json!({"content": "x", "file_path": long(513)}),
            json!(["body", "file_path"]),
        ),
        (
            "/findings/c",
            json!({"content": "x", "finding_type": long(65)}),
            json!(["body", "finding_type"]),
        ),
        ("/findings/c", json!({"content": "x", "metadata": []}), json!(["body", "metadata"])),
        ("/findings/c", json!([{"content": "x"}, {"content": ""}]), json!(["body", 1, "content"])),
        ("/findings/c", json!([{"content": "x"}, {"content": 2}]), json!(["body", 1, "content"])),
        ("/findings/c", json!("x"), json!(["body"])),
        ("/findings/c/search", json!({"query": ""}), json!(["body", "query"])),
        ("/findings/c/search", json!({"query": long(2_001)}), json!(["body", "query"])),
        ("/findings/c/search", json!({"query": "x", "top_k": "5"}), json!(["body", "top_k"])),
        ("/findings/c/invalidate", json!({}), json!(["body"])),
        (
            "/findings/c/invalidate",
            json!({"file_paths": ["x", 1]}),
            json!(["body", "file_paths", 1]),
        ),
        (
            "/findings/c/invalidate",
            json!({"file_paths": vec!["x"; 1_025]}),
            json!(["body", "file_paths"]),
        ),
        ("/monitor/profiles", json!({}), json!(["body"])),
        ("/monitor/profiles", json!({"profile_id": ""}), json!(["body", "profile_id"])),
        ("/monitor/profiles", json!({"profile_id": long(65)}), json!(["body", "profile_id"])),
        (
            "/monitor/profiles",
            json!({"profile_id": "x", "weights": {"streak": "high"}}),
            json!(["body", "weights", "streak"]),
        ),
        ("/keys", json!({"kind": "old"}), json!(["body", "kind"])),
        ("/keys", json!({"name": long(129)}), json!(["body", "name"])),
    ];
    for (path, body, loc) in cases {
        let reply = trial.post(path, OPERATOR, &body).await;
        let said = format!("{path} {}", reply.text);
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{said}");
        assert_eq!(reply.at("/detail/0/loc"), loc, "{said}");
        assert!(reply.at("/detail/0/msg").is_string() && reply.at("/detail/0/type").is_string());
    }
    let listed = trial.get("/findings/c", OPERATOR).await;
    assert_eq!(listed.at("/count"), json!(0), "a list is stored whole or not at all");
}

#[tokio::test]
async fn findings_are_listed_changed_and_forgotten() {
    let trial = Trial::new().await;
    let key = &trial.acme;
    let one = stored(&trial, "org/repo", "session tokens expire", "auth.py").await;
    let two = stored(&trial, "org/repo", "paint the fence", "fence.py").await;
    let list = trial.get("/findings/org/repo", key).await;
    assert_eq!(field(&list.at("/findings"), "finding_id"), [one.as_str(), two.as_str()]);
    assert_eq!(list.at("/count"), json!(2));
    assert_eq!(trial.get("/findings", key).await.at("/codebases"), json!(["org/repo"]));

    let question = json!({"query": "disk is full"});
    let search = "/findings/org/repo/search";
    assert_eq!(trial.post(search, key, &question).await.at("/results"), json!([]));
    let address = format!("/findings/org/repo/{one}");
    let patch = json!({"content": "the disk is full", "file_path": null, "finding_type": "bug"});
    let changed = trial.patch(&address, key, &patch).await;
    assert_eq!(changed.at("/file_path"), json!("auth.py"));
    assert_eq!(changed.at("/finding_type"), json!("bug"));
    let found = trial.post(search, key, &question).await;
    assert_eq!(field(&found.at("/results"), "finding_id"), [one.as_str()], "embedded anew");
    let wrong = trial.patch(&address, key, &json!({"content": ""})).await;
    assert_eq!(wrong.at("/detail/0/loc"), json!(["body", "content"]));

    let files = json!({"file_paths": ["fence.py", "other.py"]});
    let gone = trial.post("/findings/org/repo/invalidate", key, &files).await;
    assert_eq!(gone.at("/invalidated"), json!(1));
    let deleted = trial.delete(&address, key).await;
    assert_eq!(deleted.json, json!({"status": "deleted", "deleted": 1}));
    assert_eq!(trial.post(search, key, &question).await.at("/results"), json!([]));
    assert_eq!(trial.delete(&address, key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(trial.patch(&address, key, &json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_codebase_with_slashes_is_cleared_by_its_plain_name() {
    let trial = Trial::new().await;
    for (codebase, path) in [
        ("plain", "/findings/plain"),
        ("org/repo", "/findings/org/repo"),
        ("a/b/c", "/v1/findings/a/b/c"),
        ("a/b/c", "/v1/findings/a%2Fb%2Fc"),
    ] {
        stored(&trial, codebase, "something", "").await;
        let cleared = trial.delete(path, &trial.acme).await;
        assert_eq!(cleared.json, json!({"status": "cleared", "deleted": 1}), "{path}");
        let again = trial.delete(path, &trial.acme).await;
        assert_eq!(again.at("/status"), json!("cleared"), "{path}");
    }
}

#[tokio::test]
async fn several_findings_are_stored_at_once() {
    let trial = Trial::new().await;
    let many = json!([{"content": "one"}, {"content": "two", "metadata": {"line": 3}}]);
    let reply = trial.post("/findings/c", &trial.acme, &many).await;
    assert_eq!(reply.at("/finding_ids").as_array().unwrap().len(), 2);
    let list = trial.get("/findings/c", &trial.acme).await;
    assert_eq!(field(&list.at("/findings"), "content"), ["one", "two"]);
    assert_eq!(list.at("/findings/1/metadata"), json!({"line": 3}));
    let none = trial.post("/findings/c", &trial.acme, &json!([])).await;
    assert_eq!((none.status, none.at("/stored")), (StatusCode::OK, json!(false)));
}
