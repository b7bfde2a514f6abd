//! The dashboard at `/`: server-rendered pages, one file each, that work without a script except for live updates.
//!
//! A visitor signs in with a key and sees what the key may see; a server that is open needs none. Every page is under
//! a policy that allows our own style, our own script and nothing else, and every form carries a token that only our
//! pages know.

/// Submitted forms.
mod form;
/// Frame of all pages.
mod layout;
/// Navigation.
mod navigation;
/// Pages.
mod pages;
/// Signed-in browsers.
mod sessions;
/// Visitors.
mod visitor;

use std::net::SocketAddr;
use std::sync::Arc;

pub use layout::problem;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

use pages::{
    experiments, findings, health, keys, patterns, profiles, quickstart, run, runs, sign_in,
};
use rb_runtime::Runtime;
use rb_view::STYLE;
use sessions::Sessions;

/// The dashboard: its services and its sessions.
pub struct Dashboard {
    runtime: Arc<Runtime>,
    sessions: Sessions,
    /// Address that people use, if it is configured.
    public_url: Option<String>,
    listen: SocketAddr,
}

/// State of the handlers.
type DashboardState = Arc<Dashboard>;

impl Dashboard {
    pub fn new(runtime: Arc<Runtime>, public_url: Option<String>, listen: SocketAddr) -> Self {
        Self { runtime, sessions: Sessions::default(), public_url, listen }
    }

    /// Path of a one-time sign-in link; `None` while no key is needed.
    pub async fn sign_in_path(&self) -> Option<String> {
        if self.runtime.is_open().await {
            return None;
        }
        self.sessions.new_link().map(|secret| format!("/ui/enter?link={secret}"))
    }
}

/// A page that the navigation names.
pub struct Page {
    pub name: &'static str,
    pub path: &'static str,
    /// Only the operator sees it.
    pub is_operators: bool,
}

const fn page(name: &'static str, path: &'static str) -> Page {
    Page { name, path, is_operators: false }
}

/// The navigation, in order.
pub const PAGES: [Page; 8] = [
    page("Runs", "/"),
    page("Health", "/ui/health"),
    page("Experiments", "/ui/experiments"),
    page("Patterns", "/ui/patterns"),
    page("Profiles", "/ui/profiles"),
    page("Findings", "/ui/findings"),
    Page { name: "Keys", path: "/ui/keys", is_operators: true },
    page("Quickstart", "/ui/quickstart"),
];

const FRAME: &str = include_str!("frame.css");
const LIVE: &str = include_str!("live.js");
const ICON: &str = include_str!("icon.svg");

/// Routes of the dashboard.
pub fn routes<S>(dashboard: Arc<Dashboard>) -> Router<S> {
    Router::new()
        .route("/", get(runs::page))
        .route("/ui/run", get(run::page))
        .route("/ui/run/steer", post(run::steer))
        .route("/ui/stream", get(run::stream))
        .route("/ui/health", get(health::page))
        .route("/ui/experiments", get(experiments::page))
        .route("/ui/patterns", get(patterns::page).post(patterns::save))
        .route("/ui/pattern", get(patterns::one))
        .route("/ui/patterns/delete", post(patterns::delete))
        .route("/ui/profiles", get(profiles::page).post(profiles::save))
        .route("/ui/profiles/preview", post(profiles::preview))
        .route("/ui/profiles/delete", post(profiles::delete))
        .route("/ui/findings", get(findings::page))
        .route("/ui/findings/delete", post(findings::delete))
        .route("/ui/keys", get(keys::page).post(keys::create))
        .route("/ui/keys/revoke", post(keys::revoke))
        .route("/ui/quickstart", get(quickstart::page))
        .route("/ui/sign-in", get(sign_in::sign_in_page).post(sign_in::sign_in))
        .route("/ui/enter", get(sign_in::enter))
        .route("/ui/sign-out", post(sign_in::sign_out))
        .route("/ui/style.css", get(|| async { asset("text/css; charset=utf-8", &[STYLE, FRAME]) }))
        .route("/ui/icon.svg", get(|| async { asset("image/svg+xml", &[ICON]) }))
        .route("/ui/live.js", get(|| async { asset("text/javascript; charset=utf-8", &[LIVE]) }))
        .with_state(dashboard)
}

fn asset(kind: &'static str, parts: &[&str]) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (axum::http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, parts.concat()).into_response()
}
