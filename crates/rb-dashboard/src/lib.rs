//! The dashboard at `/`: server-rendered pages, one file each. Only live updates need JavaScript.
//!
//! A visitor signs in with a key and sees the data of that key; a server without keys needs no sign-in. The content
//! security policy of every page allows the dashboard's own style and script only, and every form has a CSRF token.

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
pub use navigation::Page;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

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

/// Pages of the navigation, in order. Each page file exports its row.
pub const PAGES: [Page; 8] = [
    runs::PAGE,
    health::PAGE,
    experiments::PAGE,
    patterns::PAGE,
    profiles::PAGE,
    findings::PAGE,
    keys::PAGE,
    quickstart::PAGE,
];

const FRAME: &str = include_str!("frame.css");
const LIVE: &str = include_str!("live.js");
const ICON: &str = include_str!("icon.svg");

/// Routes of the dashboard.
pub fn routes<S>(dashboard: Arc<Dashboard>) -> Router<S> {
    let pages = PAGES.iter().map(|page| (page.routes)());
    let unlisted = [run::routes(), sign_in::routes()];
    pages
        .chain(unlisted)
        .fold(Router::new(), |all, routes| all.merge(routes))
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
