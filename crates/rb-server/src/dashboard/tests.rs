//! What visitors see, and what they cannot do.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

use super::PAGES;
use crate::config::RawConfig;
use crate::trial::{OPERATOR, Reply, Trial};

/// One request of a browser.
async fn browse(
    trial: &Trial,
    method: Method,
    path: &str,
    cookie: &str,
    form: &[(&str, &str)],
) -> Reply {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request =
        Request::builder().method(method).uri(path).header("cookie", cookie).header("host", "here");
    trial.browse(request.body(Body::from(body)).unwrap()).await
}

async fn get(trial: &Trial, path: &str, cookie: &str) -> Reply {
    browse(trial, Method::GET, path, cookie, &[]).await
}

/// The cookie of somebody with this key.
async fn signed_in(trial: &Trial, key: &str) -> String {
    let reply = browse(trial, Method::POST, "/ui/sign-in", "", &[("key", key)]).await;
    assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.text);
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

/// The token in the forms of a page.
fn token(page: &Reply) -> String {
    let field = page.text.split("name=\"csrf\" value=\"").nth(1).expect("a form");
    field.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn every_page_is_there_and_holds_no_script_of_its_own() {
    let trial = Trial::with(RawConfig::default()).await;
    for page in PAGES {
        let reply = get(&trial, page.path, "").await;
        assert_eq!(reply.status, StatusCode::OK, "{}: {}", page.path, reply.text);
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self'"));
        assert!(reply.text.contains("aria-current=\"page\""), "{}", page.path);
        assert_eq!(reply.text.matches("<script").count(), 1, "{}", page.path);
        for inline in [" style=\"", " onclick", "<style", "javascript:"] {
            assert!(!reply.text.contains(inline), "{inline} in {}", page.path);
        }
    }
}

#[tokio::test]
async fn a_closed_server_asks_for_a_key_and_shows_what_the_key_may_see() {
    let trial = Trial::new().await;
    for (key, run) in [(&trial.acme, "acmes-run"), (&trial.globex, "globexs-run")] {
        let step = json!({"step_index": 0, "thought": "Let me look."});
        let told = trial.post(&format!("/v1/monitor/runs/{run}/steps"), key, &step).await;
        assert!(told.status.is_success(), "{}", told.text);
    }
    let away = get(&trial, "/", "").await;
    assert_eq!(
        (away.status, away.headers["location"].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/ui/sign-in")
    );
    let wrong = browse(&trial, Method::POST, "/ui/sign-in", "", &[("key", "wrong")]).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(wrong.text.contains("this key is not known"));

    let cookie = signed_in(&trial, &trial.acme).await;
    let runs = get(&trial, "/", &cookie).await;
    assert!(runs.text.contains("acmes-run") && !runs.text.contains("globexs-run"));
    assert!(!runs.text.contains("/ui/keys"), "keys are the operator's");
    let other = get(&trial, "/ui/run?org=globex&id=globexs-run", &cookie).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
    let own = get(&trial, "/ui/run?org=acme&id=acmes-run", &cookie).await;
    assert!(own.text.contains("data-live-run=\"acmes-run\""), "{}", own.text);
    assert_eq!(get(&trial, "/ui/keys", &cookie).await.status, StatusCode::FORBIDDEN);

    let form = token(&runs);
    let out = browse(&trial, Method::POST, "/ui/sign-out", &cookie, &[("csrf", &form)]).await;
    assert_eq!(out.status, StatusCode::SEE_OTHER);
    assert_eq!(get(&trial, "/", &cookie).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_pattern_is_added_changed_and_deleted_by_our_own_forms_only() {
    let trial = Trial::new().await;
    let cookie = signed_in(&trial, &trial.acme).await;
    let csrf = token(&get(&trial, "/ui/patterns?new=e1", &cookie).await);
    let texts = [
        ("tier", "e1"),
        ("situation", "<b>Stuck</b>"),
        ("dead_ends", "Waiting."),
        ("unlock", "Ask."),
    ];
    for bad in ["", "0000"] {
        let form = [&texts[..], &[("csrf", bad)]].concat();
        let refused = browse(&trial, Method::POST, "/ui/patterns", &cookie, &form).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
    let form = [&texts[..], &[("csrf", &csrf)]].concat();
    let added = browse(&trial, Method::POST, "/ui/patterns", &cookie, &form).await;
    assert_eq!(added.status, StatusCode::SEE_OTHER, "{}", added.text);
    let shown = get(&trial, "/ui/patterns", &cookie).await;
    assert!(shown.text.contains("&lt;b&gt;Stuck") && !shown.text.contains("<b>Stuck"));

    let listed = trial.get("/v1/library/patterns?tier=e1", &trial.acme).await;
    let id = listed.at("/0/pattern_id").as_str().unwrap().to_owned();
    let named = [
        ("csrf", csrf.as_str()),
        ("id", &id),
        ("tier", "e1"),
        ("situation", "Quite stuck"),
        ("unlock", "Ask."),
    ];
    let changed = browse(&trial, Method::POST, "/ui/patterns", &cookie, &named).await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    assert!(get(&trial, "/ui/patterns", &cookie).await.text.contains("Quite stuck"));
    let gone = browse(&trial, Method::POST, "/ui/patterns/delete", &cookie, &named).await;
    assert_eq!(gone.status, StatusCode::SEE_OTHER, "{}", gone.text);
    assert!(!get(&trial, "/ui/patterns", &cookie).await.text.contains("Quite stuck"));
}

#[tokio::test]
async fn the_operator_makes_a_key_and_a_revoked_key_ends_its_session() {
    let trial = Trial::new().await;
    let operator = signed_in(&trial, OPERATOR).await;
    let csrf = token(&get(&trial, "/ui/keys", &operator).await);
    let form = [("csrf", csrf.as_str()), ("name", "laptop"), ("org", "acme")];
    let made = browse(&trial, Method::POST, "/ui/keys", &operator, &form).await;
    let secret = made.text.split("<code>rb_live_").nth(1).unwrap().split('<').next().unwrap();
    let guest = signed_in(&trial, &format!("rb_live_{secret}")).await;
    assert_eq!(get(&trial, "/", &guest).await.status, StatusCode::OK);
    let keys = trial.app.store.keys().await.unwrap();
    let id = &keys.iter().find(|key| key.name == "laptop").unwrap().key_id;
    browse(&trial, Method::POST, "/ui/keys/revoke", &operator, &[("csrf", &csrf), ("id", id)])
        .await;
    assert_eq!(get(&trial, "/", &guest).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn hostile_runs_are_shown_harmlessly() {
    let trial = Trial::with(RawConfig::default()).await;
    let evil = "</pre><script>alert(1)</script>\u{202e}\u{1b}[2J\" onload=\"x";
    let step = json!({"step_index": 0, "thought": evil, "action": evil, "observation": evil, "task": evil});
    let told = trial.post("/v1/monitor/runs/evil/steps", "", &step).await;
    assert!(told.status.is_success(), "{}", told.text);
    for path in ["/", "/ui/run?id=evil", "/?q=%3Cscript%3Ealert(1)%3C/script%3E"] {
        let reply = get(&trial, path, "").await;
        assert_eq!(reply.text.matches("<script").count(), 1, "{path}");
        assert!(!reply.text.contains(['\u{202e}', '\u{1b}']), "{path}");
        assert!(!reply.text.contains("\" onload"), "{path}");
    }
}
