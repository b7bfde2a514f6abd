//! Cross-origin requests of browsers.

use axum::body::Body;
use axum::http::{Method, Request};

use crate::test_server::{OPERATOR, Trial};
use rb_server::config::RawConfig;

const FRIEND: &str = "https://friend.example";

/// Sends the preflight request of a page on this origin and returns the allowed origin of the response.
async fn allowed(trial: &Trial, origin: &str) -> Option<String> {
    let asked = Request::builder()
        .method(Method::OPTIONS)
        .uri("/v1/score")
        .header("origin", origin)
        .header("access-control-request-method", "POST");
    let reply = trial.browse(asked.body(Body::empty()).unwrap()).await;
    let told = reply.headers.get("access-control-allow-origin")?;
    Some(told.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn pages_of_named_origins_are_let_in_and_no_others() {
    let raw = |origins: Vec<String>, dev| RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        cors_allowed_origins: origins,
        cors_allow_dev_origins: dev,
        ..RawConfig::default()
    };
    let (friend, local) = (FRIEND, "http://localhost:3000");
    for (origins, dev, expected) in [
        (vec![FRIEND.to_owned()], false, [true, false]),
        (vec![], true, [false, true]),
        (vec![], false, [false, false]),
    ] {
        let trial = Trial::with(raw(origins, dev)).await;
        for (origin, is_let_in) in [friend, local].into_iter().zip(expected) {
            let told = allowed(&trial, origin).await;
            assert_eq!(told.as_deref(), is_let_in.then_some(origin), "{dev} {origin}");
        }
        assert_eq!(allowed(&trial, "https://evil.example").await, None);
    }
}
