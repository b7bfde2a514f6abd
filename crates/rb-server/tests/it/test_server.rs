//! In-memory server with a real database, for tests.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt as _;
use rb_store::{Change, Store};
use serde_json::Value;

use rb_runtime::auth::{self, KeyKind};
use rb_server::config::RawConfig;
use rb_server::{App, HttpService, Shared};
use tower::ServiceExt as _;

/// Operator key.
pub(crate) const OPERATOR: &str = "operators-key";

/// Server with keys of three tenants.
pub(crate) struct Trial {
    pub(crate) app: Shared,
    service: HttpService,
    /// Key of the organisation `acme`.
    pub(crate) acme: String,
    /// Key of the project `alpha` of `acme`.
    pub(crate) alpha: String,
    /// Key of the organisation `globex`.
    pub(crate) globex: String,
    raw: RawConfig,
    dir: Arc<tempfile::TempDir>,
}

/// Response of the server.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Null if the text is not JSON.
    pub(crate) json: Value,
}

impl Reply {
    /// Returns the value at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Value {
        self.json.pointer(pointer).cloned().unwrap_or_default()
    }
}

impl Trial {
    pub(crate) async fn new() -> Self {
        Self::with(RawConfig { static_keys: vec![OPERATOR.to_owned()], ..RawConfig::default() })
            .await
    }

    pub(crate) async fn with(raw: RawConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", dir.path().join("rb.sqlite").display());
        let store = rb_store::open(&address).await.unwrap();
        let mut secrets = Vec::new();
        if !raw.static_keys.is_empty() {
            for (org, project) in [("acme", ""), ("acme", "alpha"), ("globex", "")] {
                let (secret, row) = auth::create_key(KeyKind::Test, org, project, "trial").unwrap();
                store.apply(vec![Change::PutKey(Box::new(row))]).await.unwrap();
                secrets.push(secret);
            }
        }
        secrets.resize(3, String::new());
        let [acme, alpha, globex] = secrets.try_into().unwrap();
        let app = App::new(raw.clone().check().unwrap(), store).await.unwrap();
        let service = rb_server::service(&app);
        Self { app, service, acme, alpha, globex, raw, dir: Arc::new(dir) }
    }

    /// Starts another server on the same database, with empty memory.
    pub(crate) async fn restarted(&self) -> Self {
        let config = self.raw.clone().check().unwrap();
        let app = App::new(config, Arc::clone(self.store())).await.unwrap();
        let service = rb_server::service(&app);
        let (acme, alpha, globex) = (self.acme.clone(), self.alpha.clone(), self.globex.clone());
        Self {
            app,
            service,
            acme,
            alpha,
            globex,
            raw: self.raw.clone(),
            dir: Arc::clone(&self.dir),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.app.runtime.store
    }

    /// Sends a JSON request without a connection; the invariants of every response are checked.
    pub(crate) async fn call(
        &self,
        method: &Method,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Reply {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.send(method, path, key, body).await
    }

    /// Sends a request with any body.
    pub(crate) async fn send(&self, method: &Method, path: &str, key: &str, body: String) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = self.respond(request.body(Body::from(body)).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        let said = format!("{method} {path}: {} {text}", parts.status);
        assert!(parts.status != StatusCode::NO_CONTENT && !text.is_empty(), "{said}");
        assert!(!parts.status.is_redirection() && !parts.status.is_server_error(), "{said}");
        if parts.headers.get("content-type").is_some_and(|kind| kind == "application/json") {
            assert!(!json.is_null(), "{said}");
        }
        Reply { status: parts.status, headers: parts.headers, text, json }
    }

    /// Sends a request of a browser, which may be redirected.
    pub(crate) async fn browse(&self, request: Request<Body>) -> Reply {
        let response = self.respond(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Reply { status: parts.status, headers: parts.headers, text, json: Value::Null }
    }

    pub(crate) async fn respond(&self, request: Request<Body>) -> Response {
        self.service.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> Reply {
        self.call(&Method::GET, path, key, None).await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Reply {
        self.call(&Method::POST, path, key, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, key: &str, body: &Value) -> Reply {
        self.call(&Method::PATCH, path, key, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str, key: &str) -> Reply {
        self.call(&Method::DELETE, path, key, None).await
    }
}
