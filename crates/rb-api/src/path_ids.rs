//! Ids with slashes in paths: `POST /findings/org/repo/search` addresses the codebase `org/repo`.
//!
//! Clients do not encode ids in paths, and a route parameter matches one segment. Before routing, the slashes within an
//! id are percent-encoded; extractors decode them.

use std::borrow::Cow;

use axum::http::{Method, Request, Uri};

/// Routes with an id that may contain slashes.
struct IdRoute {
    prefix: &'static str,
    /// Last segments that are part of the route, by method.
    suffixes: &'static [(Method, &'static str)],
    /// Methods for which the last of several segments is a second id.
    nested: &'static [Method],
}

const ROUTES: [IdRoute; 3] = [
    IdRoute {
        prefix: "/findings/",
        suffixes: &[(Method::POST, "search"), (Method::POST, "invalidate")],
        nested: &[Method::DELETE, Method::PATCH],
    },
    IdRoute {
        prefix: "/monitor/runs/",
        suffixes: &[
            (Method::POST, "steps"),
            (Method::POST, "finish"),
            (Method::POST, "walk"),
            (Method::POST, "steer"),
        ],
        nested: &[],
    },
    IdRoute { prefix: "/monitor/experiments/", suffixes: &[(Method::GET, "report")], nested: &[] },
];

/// Percent-encodes the slashes within ids.
pub fn encode<B>(mut request: Request<B>) -> Request<B> {
    if let Cow::Owned(path) = encoded(request.method(), request.uri().path()) {
        let mut parts = request.uri().clone().into_parts();
        let path = match request.uri().query() {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        // The path stays valid: only slashes were replaced.
        if let Ok(path) = path.parse() {
            parts.path_and_query = Some(path);
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
        }
    }
    request
}

fn encoded<'a>(method: &Method, path: &'a str) -> Cow<'a, str> {
    let (version, rest) = match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with('/') => ("/v1", rest),
        Some(_) | None => ("", path),
    };
    for route in &ROUTES {
        let Some(rest) = rest.strip_prefix(route.prefix) else { continue };
        let (id, last) = match rest.rsplit_once('/') {
            Some((id, last)) if route.suffixes.contains(&(method.clone(), last)) => {
                (id, Some(last))
            }
            Some((id, last)) if route.nested.contains(method) => (id, Some(last)),
            Some(_) | None => (rest, None),
        };
        if !id.contains('/') {
            return Cow::Borrowed(path);
        }
        let id = id.replace('/', "%2F");
        let last = last.map(|last| format!("/{last}")).unwrap_or_default();
        return Cow::Owned(format!("{version}{}{id}{last}", route.prefix));
    }
    Cow::Borrowed(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_of_ids_are_encoded_and_no_others() {
        let cases = [
            (Method::POST, "/findings/org/repo/search", "/findings/org%2Frepo/search"),
            (Method::POST, "/v1/findings/org/repo", "/v1/findings/org%2Frepo"),
            (Method::POST, "/findings/repo/search", "/findings/repo/search"),
            (Method::GET, "/findings/a/b/c", "/findings/a%2Fb%2Fc"),
            (Method::DELETE, "/findings/a/b/c", "/findings/a%2Fb/c"),
            (Method::DELETE, "/findings/a", "/findings/a"),
            (Method::PATCH, "/findings/a/b", "/findings/a/b"),
            (Method::GET, "/findings/a/search", "/findings/a%2Fsearch"),
            (Method::POST, "/monitor/runs/a/b/steps", "/monitor/runs/a%2Fb/steps"),
            (Method::GET, "/monitor/runs/a/b", "/monitor/runs/a%2Fb"),
            (Method::GET, "/monitor/runs", "/monitor/runs"),
            (
                Method::GET,
                "/v1/monitor/experiments/x/y/report",
                "/v1/monitor/experiments/x%2Fy/report",
            ),
            (Method::GET, "/health", "/health"),
        ];
        for (method, path, expected) in cases {
            assert_eq!(encoded(&method, path), expected, "{method} {path}");
        }
    }
}
