//! Tests of the dashboard: contents of the pages and permissions of visitors.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use rb_store::{Change, RunKey, StepRow};
use serde_json::json;

use crate::test_server::{OPERATOR, Reply, Trial};
use rb_dashboard::PAGES;
use rb_server::config::RawConfig;

/// Sends one request of a browser.
async fn browse(
    trial: &Trial,
    method: Method,
    path: &str,
    cookie: &str,
    form: &[(&str, &str)],
) -> Reply {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("cookie", cookie)
        .header("host", "localhost");
    trial.browse(request.body(Body::from(body)).unwrap()).await
}

async fn get(trial: &Trial, path: &str, cookie: &str) -> Reply {
    browse(trial, Method::GET, path, cookie, &[]).await
}

/// Signs in with the key and returns the session cookie.
async fn signed_in(trial: &Trial, key: &str) -> String {
    let reply = browse(trial, Method::POST, "/ui/sign-in", "", &[("key", key)]).await;
    assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.text);
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

/// Returns the CSRF token from the forms of a page.
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
    assert!(own.text.contains("data-live=\"acmes-run\""), "{}", own.text);
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
    let csrf = token(&get(&trial, "/ui/pattern?tier=e1", &cookie).await);
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
    let keys = trial.app.runtime.store.keys().await.unwrap();
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
    let finding = json!({"content": evil, "file_path": evil, "finding_type": "note"});
    trial.post("/v1/findings/evil", "", &finding).await;
    let profile = json!({"profile_id": evil, "description": evil});
    trial.post("/v1/monitor/profiles", "", &profile).await;
    let pattern = json!({"tier": "e1", "context": evil, "failure_type": evil, "fields": {"situation": evil, "dead_ends": evil, "unlock": evil}});
    let added = trial.post("/v1/library/patterns", "", &pattern).await;
    assert!(added.status.is_success(), "{}", added.text);
    let id = added.at("/pattern_id").as_str().unwrap_or_default().to_owned();
    let said = trial.post("/v1/monitor/runs/evil/steer", "", &json!({"text": evil})).await;
    assert_eq!(said.status, StatusCode::ACCEPTED, "{}", said.text);
    let pages = [
        "/".to_owned(),
        "/ui/run?id=evil".to_owned(),
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E&pattern=%22%3E%3Cscript%3E".to_owned(),
        "/ui/patterns?q=%22%3E%3Cscript%3E".to_owned(),
        format!("/ui/pattern?tier=e1&org=default&id={id}"),
        "/ui/findings?codebase=evil".to_owned(),
        "/ui/profiles".to_owned(),
        "/ui/health".to_owned(),
    ];
    for path in &pages {
        let reply = get(&trial, path, "").await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text);
        assert_eq!(reply.text.matches("<script").count(), 1, "{path}");
        assert!(!reply.text.contains(['\u{202e}', '\u{1b}']), "{path}");
        assert!(!reply.text.contains("\" onload"), "{path}");
    }
}

#[tokio::test]
async fn the_link_of_the_start_signs_in_once_and_sees_everything() {
    let open = Trial::with(RawConfig::default()).await;
    assert_eq!(open.app.sign_in_path().await, None, "an open server needs none");
    let trial = Trial::new().await;
    let path = trial.app.sign_in_path().await.unwrap();
    let wrong = get(&trial, "/ui/enter?link=0000", "").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    let entered = get(&trial, &path, "").await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert_eq!(get(&trial, "/ui/keys", &cookie).await.status, StatusCode::OK);
    assert_eq!(get(&trial, &path, "").await.status, StatusCode::UNAUTHORIZED, "once");
}

#[tokio::test]
async fn the_cookie_is_secure_where_people_come_over_https() {
    let https = RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        public_url: "https://rb.example/".to_owned(),
        ..RawConfig::default()
    };
    let plain = RawConfig { static_keys: vec![OPERATOR.to_owned()], ..RawConfig::default() };
    for (raw, forwarded, is_secure) in
        [(https, None, true), (plain.clone(), Some("https, http"), true), (plain, None, false)]
    {
        let trial = Trial::with(raw).await;
        let mut request = Request::builder().method(Method::POST).uri("/ui/sign-in");
        if let Some(forwarded) = forwarded {
            request = request.header("x-forwarded-proto", forwarded);
        }
        let body = Body::from(format!("key={OPERATOR}"));
        let reply = trial.browse(request.body(body).unwrap()).await;
        let cookie = reply.headers["set-cookie"].to_str().unwrap();
        assert_eq!(cookie.contains("; Secure"), is_secure, "{cookie}");
    }
}

#[tokio::test]
async fn guessing_keys_is_slowed_down() {
    let trial = Trial::new().await;
    let mut last = StatusCode::OK;
    for _ in 0..25 {
        last = browse(&trial, Method::POST, "/ui/sign-in", "", &[("key", "guess")]).await.status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    let right = browse(&trial, Method::POST, "/ui/sign-in", "", &[("key", OPERATOR)]).await;
    assert_eq!(right.status, StatusCode::TOO_MANY_REQUESTS, "nobody is heard for a while");
}

#[tokio::test]
async fn a_visitor_steers_a_run_and_sees_what_waits() {
    let trial = Trial::new().await;
    trial.post("/v1/monitor/runs", &trial.acme, &json!({"run_id": "r"})).await;
    let cookie = signed_in(&trial, &trial.acme).await;
    let page = get(&trial, "/ui/run?org=acme&id=r", &cookie).await;
    let csrf = token(&page);
    let form = [("id", "r"), ("org", "acme"), ("text", "Look <there>.")];
    let refused = browse(&trial, Method::POST, "/ui/run/steer", &cookie, &form).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let form = [&form[..], &[("csrf", csrf.as_str())]].concat();
    let said = browse(&trial, Method::POST, "/ui/run/steer", &cookie, &form).await;
    assert_eq!(said.status, StatusCode::SEE_OTHER, "{}", said.text);
    let page = get(&trial, "/ui/run?org=acme&id=r", &cookie).await;
    assert!(page.text.contains("Waits for the next model call"), "{}", page.text);
    assert!(page.text.contains("Look &lt;there&gt;."), "{}", page.text);
    let other = signed_in(&trial, &trial.globex).await;
    let csrf = token(&get(&trial, "/", &other).await);
    let form = [("id", "r"), ("org", "acme"), ("text", "No."), ("csrf", &csrf)];
    let stranger = browse(&trial, Method::POST, "/ui/run/steer", &other, &form).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND, "{}", stranger.text);
}

#[tokio::test]
async fn a_profile_is_tried_saved_changed_and_deleted() {
    let trial = Trial::new().await;
    let step = json!({"step_index": 0, "thought": "Maybe. I am not sure, perhaps it fails."});
    trial.post("/v1/monitor/runs/r/steps", &trial.acme, &step).await;
    let cookie = signed_in(&trial, &trial.acme).await;
    let csrf = token(&get(&trial, "/ui/profiles?new=1", &cookie).await);
    let form =
        [("csrf", csrf.as_str()), ("name", "calm"), ("weight.streak", "0.9"), ("weight.hedge", "")];
    let tried = browse(&trial, Method::POST, "/ui/profiles/preview", &cookie, &form).await;
    assert_eq!(tried.status, StatusCode::OK, "{}", tried.text);
    assert!(tried.text.contains("Of the newest 1 run"), "{}", tried.text);
    assert!(tried.text.contains("value=\"0.9\""), "the form keeps what was written");
    assert_eq!(
        get(&trial, "/ui/profiles?id=calm&org=acme", &cookie).await.status,
        StatusCode::NOT_FOUND
    );
    let saved = browse(&trial, Method::POST, "/ui/profiles", &cookie, &form).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let named = [("csrf", csrf.as_str()), ("id", "calm"), ("org", "acme"), ("weight.hedge", "0.5")];
    let changed = browse(&trial, Method::POST, "/ui/profiles", &cookie, &named).await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    let kept = trial.get("/v1/monitor/profiles/calm", &trial.acme).await;
    assert_eq!(kept.at("/own_weights"), json!({"hedge": 0.5}), "what was emptied goes back");
    let wrong = [("csrf", csrf.as_str()), ("name", "x"), ("weight.streak", "much")];
    let wrong = browse(&trial, Method::POST, "/ui/profiles", &cookie, &wrong).await;
    assert!(wrong.text.contains("a number from 0 to 1 is wanted"), "{}", wrong.text);
    let gone = browse(&trial, Method::POST, "/ui/profiles/delete", &cookie, &named).await;
    assert_eq!(gone.status, StatusCode::SEE_OTHER, "{}", gone.text);
}

#[tokio::test]
async fn a_pattern_shows_the_runs_in_which_it_was_shown() {
    let trial = Trial::new().await;
    let fields = json!({"situation": "Stuck", "dead_ends": "Waiting.", "unlock": "Ask."});
    let pattern = json!({"tier": "e1", "context": "stuck", "fields": fields});
    let added = trial.post("/v1/library/patterns", &trial.acme, &pattern).await;
    let id = added.at("/pattern_id").as_str().unwrap().to_owned();
    let step = json!({"step_index": 0, "thought": "x", "injections": [format!("[e1:{id}]")]});
    trial.post("/v1/monitor/runs/helped/steps", &trial.acme, &step).await;
    trial.post("/v1/monitor/runs/alone/steps", &trial.acme, &json!({"step_index": 0})).await;
    let cookie = signed_in(&trial, &trial.acme).await;
    let page = get(&trial, &format!("/ui/pattern?tier=e1&org=acme&id={id}"), &cookie).await;
    assert!(page.text.contains("helped") && !page.text.contains("alone"), "{}", page.text);
    let listed = get(&trial, &format!("/?pattern=e1:{id}"), &cookie).await;
    assert!(listed.text.contains("helped") && !listed.text.contains("alone"), "{}", listed.text);
}

#[tokio::test]
async fn states_on_every_page_of_a_long_run_continue_the_run() {
    let trial = Trial::with(RawConfig::default()).await;
    let run = RunKey { org: "default".to_owned(), run_id: "long".to_owned() };
    // Only the first ten steps have a thought, so every later state depends on them.
    let steps = (0..900).map(|step_index| {
        let thought = if step_index < 10 { "Maybe. I am not sure, perhaps it fails." } else { "" };
        let (run, thought) = (run.clone(), thought.to_owned());
        Change::PutStep(Arc::new(StepRow { run, step_index, thought, ..StepRow::default() }))
    });
    trial.app.runtime.store.apply(steps.collect()).await.unwrap();
    for from in [0, 400, 500, 800] {
        let page = get(&trial, &format!("/ui/run?org=default&id=long&from={from}"), "").await;
        let after_last_thought = page.text.matches("state NORMAL").count();
        let shown = (900 - from).min(400);
        assert_eq!(after_last_thought, shown, "from {from}");
    }
}
