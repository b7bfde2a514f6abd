//! The dashboard at `/`: server-rendered pages, one file each, that work without a script except for live updates.
//!
//! A visitor signs in with a key and sees what the key may see; a server that is open needs none. Every page is under
//! a policy that allows our own style, our own script and nothing else, and every form carries a token that only our
//! pages know.

/// Experiments: which there are, and what they show.
mod experiments;
/// What agents learned, by codebase.
mod findings;
/// Fields that a form sends.
mod form;
/// How the runs fare.
mod health;
/// Keys, for the operator.
mod keys;
/// What all pages have around them.
mod layout;
/// The library: read, add, edit, delete.
mod patterns;
/// What other weights would have said of stored runs.
mod preview;
/// Weights under a name.
mod profiles;
/// Lines to paste, for each door.
mod quickstart;
/// One run, live.
mod run;
/// The list of runs.
mod runs;
/// Whoever is signed in.
mod sessions;
/// Who is looking, and how they sign in and out.
mod visitor;

pub(crate) use sessions::Sessions;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

use crate::app::Shared;
use rb_view::STYLE;

/// A page that the navigation names.
struct Page {
    name: &'static str,
    path: &'static str,
    /// Only the operator sees it.
    is_operators: bool,
}

const fn page(name: &'static str, path: &'static str) -> Page {
    Page { name, path, is_operators: false }
}

/// The navigation, in order.
const PAGES: [Page; 8] = [
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

pub(crate) fn routes() -> Router<Shared> {
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
        .route("/ui/sign-in", get(visitor::sign_in_page).post(visitor::sign_in))
        .route("/ui/enter", get(visitor::enter))
        .route("/ui/sign-out", post(visitor::sign_out))
        .route("/ui/style.css", get(|| async { asset("text/css; charset=utf-8", &[STYLE, FRAME]) }))
        .route("/ui/icon.svg", get(|| async { asset("image/svg+xml", &[ICON]) }))
        .route("/ui/live.js", get(|| async { asset("text/javascript; charset=utf-8", &[LIVE]) }))
}

fn asset(kind: &'static str, parts: &[&str]) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (axum::http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, parts.concat()).into_response()
}

#[cfg(test)]
mod tests;
