//! Permissions of keys. The first tests cover every documented route; for every route of tenant data, the table
//! contains the response to another tenant.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use rb_store::{Change, FindingRow, ProfileRow};
use serde_json::{Value, json};

use super::contract::operations;
use super::{field, with_runs};
use crate::test_server::{OPERATOR, Reply, Trial};
use rb_server::config::RawConfig;

/// Returns the path with values for its variables.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn without_a_key_or_with_a_wrong_one_every_closed_route_is_closed() {
    let trial = Trial::new().await;
    let mut closed = 0;
    for (method, path, operation) in operations() {
        if operation.get("security").is_none() {
            continue;
        }
        closed += 1;
        let method: Method = method.to_uppercase().parse().unwrap();
        for version in ["", "/v1"] {
            for key in ["", "rb_live_unknown"] {
                let path = format!("{version}{}", filled(&path));
                let reply = trial.call(&method, &path, key, None).await;
                assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{method} {path} `{key}`");
                assert_eq!(reply.headers["www-authenticate"], "Bearer", "{method} {path}");
                assert!(reply.at("/detail").is_string(), "{method} {path}");
                assert!(!reply.text.contains("rb_live_unknown"), "{method} {path}");
            }
        }
    }
    assert!(closed > 20, "{closed}");
}

#[tokio::test]
async fn open_routes_need_no_key() {
    let trial = Trial::new().await;
    for path in ["/health", "/metrics", "/openapi.json", "/docs"] {
        for version in ["", "/v1"] {
            let reply = trial.get(&format!("{version}{path}"), "").await;
            assert_eq!(reply.status, StatusCode::OK, "{version}{path}");
        }
    }
}

#[tokio::test]
async fn a_key_may_come_in_the_query() {
    let trial = Trial::new().await;
    let reply = trial.get(&format!("/monitor/me?token={}", trial.acme), "").await;
    assert_eq!((reply.status, reply.at("/org_id")), (StatusCode::OK, json!("acme")));
}

#[tokio::test]
async fn large_bodies_are_refused_on_every_route_that_takes_one() {
    let trial = Trial::with(RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        max_body_bytes: 100,
        ..RawConfig::default()
    })
    .await;
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(200));
    for (method, path, operation) in operations() {
        if operation.get("requestBody").is_none() {
            continue;
        }
        let method: Method = method.to_uppercase().parse().unwrap();
        let reply = trial.send(&method, &filled(&path), OPERATOR, large.clone()).await;
        assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE, "{method} {path}");
        assert!(reply.text.contains("100 bytes"), "{method} {path}");
        let reply = trial.send(&method, &filled(&path), OPERATOR, "{\"x".to_owned()).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{method} {path}");
    }
}

#[tokio::test]
async fn too_many_requests_are_told_to_wait_and_other_keys_are_not() {
    let trial = Trial::with(RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        rate_limit_per_sec: 1,
        rate_limit_burst: 2,
        ..RawConfig::default()
    })
    .await;
    for status in [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let reply = trial.get("/monitor/me", &trial.acme).await;
        assert_eq!(reply.status, status);
        let wait = reply.headers.get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!(wait, (status == StatusCode::TOO_MANY_REQUESTS).then_some("1"));
    }
    assert_eq!(trial.get("/monitor/me", &trial.globex).await.status, StatusCode::OK);
}

#[tokio::test]
async fn other_methods_and_addresses_are_answered_in_json() {
    let trial = Trial::new().await;
    let cases = [
        (Method::PUT, "/monitor/runs", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "/nowhere", StatusCode::NOT_FOUND),
        (Method::GET, "/monitor/runs/", StatusCode::NOT_FOUND),
        (Method::GET, "/monitor/profiles/%FF", StatusCode::BAD_REQUEST),
    ];
    for (method, path, status) in cases {
        let reply = trial.call(&method, path, OPERATOR, None).await;
        assert_eq!(reply.status, status, "{method} {path}");
        assert!(reply.at("/detail").is_string(), "{method} {path}: {}", reply.text);
    }
    let reply = trial.call(&Method::PUT, "/monitor/runs", OPERATOR, None).await;
    let allowed = reply.headers["allow"].to_str().unwrap();
    assert_eq!(allowed.split(',').collect::<BTreeSet<_>>(), ["GET", "HEAD", "POST"].into());
}

/// Expected response to `globex` for data of `acme`.
enum Seen {
    Status(StatusCode),
    /// List at a pointer whose items have these values of a field.
    Only(&'static str, &'static str, &'static [&'static str]),
    /// Value at a pointer.
    Is(&'static str, Value),
}

/// Starts a server where `acme` has a run in each of two projects, a finding and a profile, and `globex` has a run.
async fn furnished() -> Trial {
    let trial = with_runs().await;
    let finding = FindingRow {
        org: "acme".to_owned(),
        codebase: "org/repo".to_owned(),
        finding_id: "fnd_a".to_owned(),
        content: "session expiry is checked in auth.py".to_owned(),
        ..FindingRow::default()
    };
    let profile = ProfileRow {
        org: "acme".to_owned(),
        profile_id: "strict".to_owned(),
        ..ProfileRow::default()
    };
    let changes =
        vec![Change::PutFinding(Box::new(finding)), Change::PutProfile(Box::new(profile))];
    trial.store().apply(changes).await.unwrap();
    trial
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row a route")]
async fn a_tenant_sees_nothing_of_another_whatever_it_asks_for() {
    use Seen::{Is, Only, Status};
    const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
    const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
    let note = json!({"content": "mine", "org_id": "acme"});
    let cases = [
        ("get", "/monitor/runs", "/monitor/runs?org_id=acme", None, Only("", "run_id", &["g-1"])),
        ("get", "/monitor/runs/{run_id}", "/monitor/runs/a/1?org_id=acme", None, Status(NOT_FOUND)),
        (
            "get",
            "/monitor/health-summary",
            "/monitor/health-summary?org_id=acme",
            None,
            Is("/total_runs", json!(1)),
        ),
        (
            "get",
            "/monitor/experiments",
            "/monitor/experiments?org_id=acme",
            None,
            Is("/0/n_runs", json!(1)),
        ),
        (
            "get",
            "/monitor/experiments/{experiment_id}/report",
            "/monitor/experiments/trial/report?org_id=acme",
            None,
            Is("/srm/observed", json!({"on": 1, "off": 0})),
        ),
        (
            "get",
            "/monitor/profiles",
            "/monitor/profiles?org_id=acme",
            None,
            Only("", "profile_id", &["coding", "pr_review", "qa"]),
        ),
        (
            "post",
            "/monitor/profiles",
            "/monitor/profiles",
            Some(json!({"profile_id": "strict", "org_id": "acme"})),
            Is("/org_id", json!("globex")),
        ),
        (
            "get",
            "/monitor/profiles/{profile_id}",
            "/monitor/profiles/strict?org_id=acme",
            None,
            Is("/org_id", json!("globex")),
        ),
        (
            "delete",
            "/monitor/profiles/{profile_id}",
            "/monitor/profiles/strict?org_id=acme",
            None,
            Is("/status", json!("deleted")),
        ),
        (
            "patch",
            "/monitor/profiles/{profile_id}",
            "/monitor/profiles/strict?org_id=acme",
            Some(json!({"description": "taken over"})),
            Status(NOT_FOUND),
        ),
        ("get", "/monitor/scorers", "/monitor/scorers", None, Is("/0/name", json!("streak"))),
        ("get", "/monitor/me", "/monitor/me?org_id=acme", None, Is("/org_id", json!("globex"))),
        ("get", "/findings", "/findings?org_id=acme", None, Is("/codebases", json!(["org/repo"]))),
        (
            "get",
            "/findings/{codebase_id}",
            "/findings/org/repo?org_id=acme",
            None,
            Is("/count", json!(0)),
        ),
        (
            "post",
            "/findings/{codebase_id}/search",
            "/findings/org/repo/search?org_id=acme",
            Some(json!({"query": "session expiry", "score_threshold": 0})),
            Is("/results", json!([])),
        ),
        (
            "post",
            "/findings/{codebase_id}/invalidate",
            "/findings/org/repo/invalidate?org_id=acme",
            Some(json!({"file_paths": [""]})),
            Is("/invalidated", json!(0)),
        ),
        (
            "patch",
            "/findings/{codebase_id}/{finding_id}",
            "/findings/org/repo/fnd_a?org_id=acme",
            Some(json!({"content": "x"})),
            Status(NOT_FOUND),
        ),
        (
            "delete",
            "/findings/{codebase_id}/{finding_id}",
            "/findings/org/repo/fnd_a?org_id=acme",
            None,
            Is("/deleted", json!(0)),
        ),
        (
            "delete",
            "/findings/{codebase_id}",
            "/findings/org%2Frepo?org_id=acme",
            None,
            Is("/deleted", json!(0)),
        ),
        (
            "post",
            "/findings/{codebase_id}",
            "/findings/org/repo?org_id=acme",
            Some(note),
            Is("/stored", json!(true)),
        ),
        ("get", "/billing/meter", "/billing/meter?org_id=acme", None, Status(FORBIDDEN)),
        ("get", "/keys", "/keys", None, Status(FORBIDDEN)),
        ("post", "/keys", "/keys", Some(json!({"org_id": "acme"})), Status(FORBIDDEN)),
        ("delete", "/keys/{key_id}", "/keys/x", None, Status(FORBIDDEN)),
    ];
    let trial = furnished().await;
    let covered: BTreeSet<_> =
        cases.iter().map(|(method, template, ..)| format!("{method} {template}")).collect();
    for (method, template, operation) in operations() {
        let ours = ["runs", "profiles", "experiments", "findings", "billing", "keys"];
        let is_ours = ours.iter().any(|area| operation["tags"][0] == *area);
        let route = format!("{method} {template}");
        assert!(!is_ours || covered.contains(&route), "nobody tries {route}");
    }
    for (method, _, path, body, seen) in cases {
        let method: Method = method.to_uppercase().parse().unwrap();
        for version in ["/v1", ""] {
            // The first version of the path has already created or deleted the profile.
            if version.is_empty() && path.contains("/profiles") && method != Method::GET {
                continue;
            }
            let path = format!("{version}{path}");
            let reply = trial.call(&method, &path, &trial.globex, body.as_ref()).await;
            check(&seen, &reply, &format!("{method} {path}: {} {}", reply.status, reply.text));
        }
    }
    let left = trial.get("/findings/org/repo", &trial.acme).await;
    assert_eq!(field(&left.at("/findings"), "finding_id"), ["fnd_a"]);
    assert_eq!(trial.get("/monitor/profiles/strict", &trial.acme).await.at("/description"), "");
}

fn check(seen: &Seen, reply: &Reply, said: &str) {
    match seen {
        Seen::Status(status) => assert_eq!(reply.status, *status, "{said}"),
        Seen::Only(list, name, values) => {
            assert_eq!(field(&reply.at(list), name), *values, "{said}");
        }
        Seen::Is(pointer, value) => {
            assert!(reply.status.is_success(), "{said}");
            assert_eq!(reply.at(pointer), *value, "{said}");
        }
    }
}

#[tokio::test]
async fn a_project_key_sees_its_project_and_the_operator_sees_all() {
    let trial = furnished().await;
    let cases = [
        (&trial.alpha, "/monitor/runs", vec!["a/1"]),
        (&trial.alpha, "/monitor/runs?project_id=beta", vec!["a/1"]),
        (&trial.acme, "/monitor/runs", vec!["a-2", "a/1"]),
        (&trial.acme, "/monitor/runs?project_id=beta", vec!["a-2"]),
        (&OPERATOR.to_owned(), "/monitor/runs", vec!["g-1", "a-2", "a/1"]),
        (&OPERATOR.to_owned(), "/monitor/runs?org_id=acme", vec!["a-2", "a/1"]),
        (&OPERATOR.to_owned(), "/monitor/runs?org_name=globex", vec!["g-1"]),
    ];
    for (key, path, expected) in cases {
        assert_eq!(field(&trial.get(path, key).await.json, "run_id"), expected, "{path}");
    }
    let other = trial.get("/monitor/runs/a-2", &trial.alpha).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
}
