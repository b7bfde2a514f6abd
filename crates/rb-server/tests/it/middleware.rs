//! Middleware, on each surface.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use rb_server::config::RawConfig;
use serde_json::Value;

use crate::test_server::{OPERATOR, Reply, Trial};

/// A route of each surface: method, path as requested, route in the metrics, header of the key, status. No provider
/// listens behind the gateway.
const ROUTES: [(Method, &str, &str, &str, u16); 4] = [
    (Method::GET, "/v1/monitor/me", "/monitor/me", "authorization", 200),
    (Method::POST, "/anthropic/v1/messages", "/anthropic/{*path}", "x-reasonblocks-key", 502),
    (Method::POST, "/openai/v1/chat/completions", "/openai/{*path}", "x-reasonblocks-key", 502),
    (Method::GET, "/ui/sign-in", "/ui/sign-in", "cookie", 200),
];

/// A server with a burst of `burst` requests per key and without a provider.
async fn server(burst: u32) -> Trial {
    let mut raw = RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        rate_limit_per_sec: 1,
        rate_limit_burst: burst,
        ..RawConfig::default()
    };
    for provider in &rb_wire::providers::PROVIDERS {
        raw.gateway.base_urls.set(provider.id, "http://127.0.0.1:1");
    }
    Trial::with(raw).await
}

async fn send(server: &Trial, method: &Method, path: &str, key: (&str, &str)) -> Reply {
    let (header, key) = key;
    let key = if header == "authorization" { format!("Bearer {key}") } else { key.to_owned() };
    let request = Request::builder().method(method).uri(path).header(header, key);
    let request = request.header("x-request-id", "given-1").body(Body::from("{}")).unwrap();
    server.browse(request).await
}

#[tokio::test]
async fn each_surface_limits_the_requests_of_a_key() {
    for (method, path, _, header, expected) in ROUTES {
        let server = server(2).await;
        for _ in 0..2 {
            let reply = send(&server, &method, path, (header, OPERATOR)).await;
            assert_eq!(reply.status.as_u16(), expected, "{path}: {}", reply.text);
        }
        let limited = send(&server, &method, path, (header, OPERATOR)).await;
        assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        let other = send(&server, &method, path, (header, "other")).await;
        assert_ne!(other.status, StatusCode::TOO_MANY_REQUESTS, "{path}: another key");
        let health = send(&server, &Method::GET, "/health", (header, OPERATOR)).await;
        assert_eq!(health.status, StatusCode::OK, "{path}: no limit for health checks");
    }
}

#[tokio::test]
async fn a_limited_request_is_answered_in_the_format_of_its_surface() {
    let error = |reply: &Reply, pointer: &str| {
        let body: Value = serde_json::from_str(&reply.text).unwrap();
        body.pointer(pointer).cloned().unwrap_or_default()
    };
    for (method, path, _, header, _) in ROUTES {
        let server = server(1).await;
        send(&server, &method, path, (header, OPERATOR)).await;
        let reply = send(&server, &method, path, (header, OPERATOR)).await;
        match path {
            "/v1/monitor/me" => assert!(error(&reply, "/detail").is_string(), "{}", reply.text),
            "/anthropic/v1/messages" => {
                assert_eq!(error(&reply, "/error/type"), "rate_limit_error", "{}", reply.text);
            }
            "/openai/v1/chat/completions" => {
                assert!(error(&reply, "/error/message").is_string(), "{}", reply.text);
            }
            _ => assert!(reply.text.starts_with("<!DOCTYPE html>"), "{}", reply.text),
        }
        if path != "/ui/sign-in" {
            assert_eq!(reply.headers["retry-after"], "1", "{path}");
        }
    }
}

#[tokio::test]
async fn each_surface_has_request_ids_and_metrics() {
    let server = server(100).await;
    for (method, path, route, header, status) in ROUTES {
        let reply = send(&server, &method, path, (header, OPERATOR)).await;
        assert_eq!(reply.headers["x-request-id"], "given-1", "{path}");
        let metrics = server.app.runtime.metrics.text();
        let counted =
            format!(r#"reasonblocks_requests_total{{route="{route}",status="{status}"}} 1"#);
        assert!(metrics.contains(&counted), "{counted}: {metrics}");
        let timed = format!(r#"request_duration_seconds_count{{route="{route}"}} 1"#);
        assert!(metrics.contains(&timed), "{timed}: {metrics}");
    }
    for id in ["", "a b", "x".repeat(129).as_str()] {
        let request = Request::get("/nowhere").header("x-request-id", id);
        let reply = server.browse(request.body(Body::empty()).unwrap()).await;
        let assigned = reply.headers["x-request-id"].to_str().unwrap();
        assert_eq!((reply.status.as_u16(), assigned.len()), (404, 32), "{id}: {assigned}");
    }
}

#[test]
fn the_documented_layers_are_the_layers_in_order() {
    let source = include_str!("../../src/router.rs");
    let documented: Vec<(usize, &str)> = source
        .lines()
        .filter_map(|line| {
            let (number, rest) = line.strip_prefix("/// ")?.split_once(". `")?;
            Some((number.parse().ok()?, rest.split_once('`')?.0))
        })
        .collect();
    let (_, stack) = source.split_once("ServiceBuilder::new()").unwrap();
    let (stack, _) = stack.split_once(';').unwrap();
    let stack = stack.split("layer(").skip(1).filter_map(|call| Some(call.split_once(')')?.0));
    let layers = std::iter::once("path_ids").chain(stack).chain(["rate_limit"]);
    assert_eq!(documented, (1..).zip(layers).collect::<Vec<_>>());
    assert!(source.contains("path_ids.layer(routes(app).layer(layers))"), "the outermost layer");
    assert_eq!(source.matches(".layer(rate_limit(").count(), 3, "one for each surface");
}
