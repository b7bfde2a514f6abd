//! Requests that a server without keys rejects.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};

use crate::test_server::Trial;
use rb_server::config::RawConfig;

async fn status(trial: &Trial, method: Method, host: &str, origin: &str) -> StatusCode {
    let mut request = Request::builder().method(method).uri("/v1/score").header("host", host);
    if !origin.is_empty() {
        request = request.header("origin", origin);
    }
    let body = Body::from(r#"{"thought": "x"}"#);
    trial.browse(request.body(body).unwrap()).await.status
}

#[tokio::test]
async fn an_open_server_answers_to_its_own_names_and_pages_alone() {
    let open = Trial::with(RawConfig {
        cors_allowed_origins: vec!["https://friend.example".to_owned()],
        public_url: "https://rb.example".to_owned(),
        ..RawConfig::default()
    })
    .await;
    for host in ["localhost:9000", "127.0.0.1:9000", "[::1]:9000", "10.0.0.7", "rb.example"] {
        assert_eq!(status(&open, Method::POST, host, "").await, StatusCode::OK, "{host}");
    }
    for host in ["evil.example:9000", "127.0.0.1.evil.example", "localhost.evil", "[evil]:1"] {
        for method in [Method::GET, Method::POST] {
            assert_eq!(status(&open, method, host, "").await, StatusCode::FORBIDDEN, "{host}");
        }
    }
    for (origin, expected) in [
        ("http://localhost:9000", StatusCode::OK),
        ("https://friend.example", StatusCode::OK),
        ("http://localhost:3000", StatusCode::FORBIDDEN),
        ("https://evil.example", StatusCode::FORBIDDEN),
        ("null", StatusCode::FORBIDDEN),
    ] {
        let told = status(&open, Method::POST, "localhost:9000", origin).await;
        assert_eq!(told, expected, "{origin}");
    }
}

#[tokio::test]
async fn a_server_with_keys_lets_the_key_decide() {
    let closed = Trial::new().await;
    let told = status(&closed, Method::POST, "rb.example", "https://rb.example").await;
    assert_eq!(told, StatusCode::UNAUTHORIZED);
}
