//! Profiles, monitors, keys, and who is calling.

use axum::http::StatusCode;
use rb_engine::monitors;
use serde_json::{Value, json};

use super::field;
use crate::test_server::{OPERATOR, Trial};
use rb_server::config::RawConfig;

const CREATED: StatusCode = StatusCode::CREATED;
const CONFLICT: StatusCode = StatusCode::CONFLICT;

#[tokio::test]
async fn built_in_profiles_are_listed_and_cannot_be_changed() {
    let trial = Trial::new().await;
    let list = trial.get("/monitor/profiles", &trial.acme).await;
    assert_eq!(field(&list.json, "profile_id"), ["coding", "pr_review", "qa"]);
    assert_eq!(list.at("/0/built_in"), json!(true));
    assert_eq!(list.at("/0/weights").as_object().unwrap().len(), monitors::ALL.len());
    assert_eq!(list.at("/0/weights/claim_contradiction"), json!(0.3));
    let path = "/monitor/profiles/coding?org_id=default";
    let replies = [
        trial.post("/monitor/profiles", OPERATOR, &json!({"profile_id": "coding"})).await,
        trial.patch(path, OPERATOR, &json!({"weights": {"streak": 1}})).await,
        trial.delete(path, OPERATOR).await,
    ];
    for reply in replies {
        assert_eq!(reply.status, CONFLICT, "{}", reply.text);
        assert!(reply.text.contains("`coding` is built in"), "{}", reply.text);
    }
    assert_eq!(trial.get(path, OPERATOR).await.at("/profile_id"), json!("coding"));
}

#[tokio::test]
async fn weights_are_clamped_and_the_reply_says_so() {
    let trial = Trial::new().await;
    let new = json!({
        "profile_id": "strict", "colour": "red", "built_in": true,
        "weights": {"streak": 3, "hedge": -1, "sterak": 0.5, "diversity": 0.25},
    });
    let made = trial.post("/v1/monitor/profiles", &trial.acme, &new).await;
    assert_eq!(made.status, CREATED, "{}", made.text);
    let own = json!({"streak": 1.0, "hedge": 0.0, "diversity": 0.25});
    assert_eq!(made.at("/own_weights"), own);
    assert_eq!(made.at("/weights/streak"), json!(1.0));
    assert_eq!(made.at("/weights/semantic_loop"), json!(0.25), "as under `coding`");
    assert_eq!(made.at("/notes").as_array().unwrap().len(), 3);
    assert!(made.text.contains("unknown monitor: `sterak`"), "{}", made.text);
    assert_eq!((made.at("/colour"), made.at("/built_in")), (json!("red"), json!(false)));

    let patch = json!({
        "description": "ours", "colour": null, "weights": {"streak": null, "call_count": 2},
    });
    let changed = trial.patch("/monitor/profiles/strict", &trial.acme, &patch).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    let own = json!({"hedge": 0.0, "diversity": 0.25, "call_count": 1.0});
    assert_eq!(changed.at("/own_weights"), own);
    let read = trial.get("/monitor/profiles/strict", &trial.acme).await;
    assert_eq!((read.at("/own_weights"), read.at("/colour")), (own, Value::Null));
    assert_eq!(read.at("/description"), json!("ours"));
    assert_eq!(read.at("/notes"), Value::Null);
}

#[tokio::test]
async fn a_name_exists_once_for_the_organisation_and_once_for_each_project() {
    let trial = Trial::new().await;
    let new = |project: &str, about: &str| json!({"profile_id": "p", "org_id": "acme", "project_id": project, "description": about});
    let cases = [
        (OPERATOR, new("", "all"), CREATED),
        (OPERATOR, new("", "again"), CONFLICT),
        (OPERATOR, new("beta", "beta's"), CREATED),
        // The key's project wins over the body.
        (&trial.alpha, new("beta", "alpha's"), CREATED),
        (&trial.alpha, new("", "alpha's again"), CONFLICT),
        (&trial.globex, new("", "globex's"), CREATED),
    ];
    for (key, body, status) in cases {
        let reply = trial.post("/monitor/profiles", key, &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
    }
    let cases = [
        (trial.acme.as_str(), "", "all"),
        (&trial.acme, "?project_id=beta", "beta's"),
        (&trial.acme, "?project_id=gamma", "all"),
        (&trial.alpha, "", "alpha's"),
        (&trial.alpha, "?project_id=beta", "alpha's"),
        (OPERATOR, "?org_id=acme&project_id=beta", "beta's"),
        (OPERATOR, "?org_id=globex", "globex's"),
    ];
    for (key, query, about) in cases {
        let reply = trial.get(&format!("/monitor/profiles/p{query}"), key).await;
        assert_eq!(reply.at("/description"), json!(about), "{query}");
    }
    let seen = trial.get("/monitor/profiles", &trial.alpha).await;
    assert_eq!(field(&seen.json, "project_id"), ["", "", "", "", "alpha"]);
}

#[tokio::test]
async fn the_operator_must_say_whose_profile_is_deleted() {
    let trial = Trial::new().await;
    let new = json!({"profile_id": "p", "org_id": "acme"});
    trial.post("/monitor/profiles", OPERATOR, &new).await;
    let vague = trial.delete("/monitor/profiles/p", OPERATOR).await;
    assert_eq!(vague.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(vague.at("/detail/0/loc"), json!(["query", "org_id"]));
    let path = "/monitor/profiles/p?org_id=acme";
    let gone = trial.delete(path, OPERATOR).await;
    assert_eq!(gone.json, json!({"status": "deleted", "profile_id": "p"}));
    assert_eq!(trial.delete(path, OPERATOR).await.status, StatusCode::NOT_FOUND);
    assert_eq!(trial.get(path, OPERATOR).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn scorers_are_the_table_of_monitors() {
    let trial = Trial::new().await;
    let scorers = trial.get("/monitor/scorers", &trial.acme).await;
    let names: Vec<_> = monitors::ALL.iter().map(|spec| spec.id).collect();
    assert_eq!(field(&scorers.json, "name"), names);
    let position = names.iter().position(|name| *name == "semantic_loop").unwrap();
    let scorer = scorers.at(&format!("/{position}"));
    assert_eq!(scorer["suite"], "semantic");
    assert_eq!(scorer["weight"], json!(0.25));
    assert_eq!(scorer["weights"], json!({"coding": 0.25, "pr_review": 0.3, "qa": 0.15}));
}

#[tokio::test]
async fn callers_are_told_who_they_are() {
    let trial = Trial::new().await;
    let cases = [
        (trial.acme.as_str(), json!(["acme", null, false])),
        (&trial.alpha, json!(["acme", "alpha", false])),
        (OPERATOR, json!([null, null, true])),
    ];
    for (key, expected) in cases {
        let me = trial.get("/monitor/me", key).await;
        let told = json!([me.at("/org_id"), me.at("/project_id"), me.at("/is_superuser")]);
        assert_eq!(told, expected);
        assert!(!me.text.contains(key));
    }
}

#[tokio::test]
async fn a_key_opens_until_it_is_revoked_and_its_secret_is_shown_once() {
    let trial = Trial::new().await;
    let new = json!({"name": "ci", "org_id": "initech", "project_id": "tps", "kind": "test"});
    let made = trial.post("/keys", OPERATOR, &new).await;
    assert_eq!(made.status, CREATED, "{}", made.text);
    let secret = made.at("/secret").as_str().unwrap().to_owned();
    assert!(secret.starts_with("rb_test_"));
    let me = trial.get("/monitor/me", &secret).await;
    assert_eq!((me.at("/org_id"), me.at("/project_id")), (json!("initech"), json!("tps")));
    let list = trial.get("/keys", OPERATOR).await;
    assert!(!list.text.contains(&secret) && !list.text.contains("hash"), "{}", list.text);
    assert_eq!(list.at("/3/name"), json!("ci"));

    let path = format!("/keys/{}", made.at("/key_id").as_str().unwrap());
    for _ in 0..2 {
        assert_eq!(trial.delete(&path, OPERATOR).await.at("/status"), json!("revoked"));
        assert_eq!(trial.get("/monitor/me", &secret).await.status, StatusCode::UNAUTHORIZED);
    }
    assert!(trial.get("/keys", OPERATOR).await.at("/3/revoked_at").is_string());
    assert_eq!(trial.delete("/keys/key_x", OPERATOR).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_first_key_closes_an_open_server() {
    let trial = Trial::with(RawConfig::default()).await;
    let me = trial.get("/monitor/me", "").await;
    assert_eq!((me.at("/key_id"), me.at("/is_open")), (json!("local"), json!(true)));
    let made = trial.post("/keys", "", &json!({})).await;
    assert_eq!((made.status, made.at("/org_id")), (CREATED, json!("default")));
    assert_eq!(trial.get("/monitor/me", "").await.status, StatusCode::UNAUTHORIZED);
    let secret = made.at("/secret").as_str().unwrap().to_owned();
    assert_eq!(trial.get("/monitor/me", &secret).await.at("/org_id"), json!("default"));
}
