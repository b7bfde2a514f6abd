//! Authentication of requests by a bearer token.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use rb_runtime::auth::Caller;

use crate::Surface;
use crate::error::{ApiError, ApiResult};

/// Caller of a request; rejects requests without a valid key.
pub struct Authenticated(pub Caller);

impl<S: Surface> FromRequestParts<Arc<S>> for Authenticated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, surface: &Arc<S>) -> ApiResult<Self> {
        // The middleware that tracks requests has authenticated the caller already.
        if let Some(caller) = parts.extensions.get::<Caller>() {
            return Ok(Self(caller.clone()));
        }
        let runtime = surface.runtime();
        let caller = runtime.keys.caller(secret(parts).as_deref(), &*runtime.store).await?;
        parts.extensions.insert(caller.clone());
        Ok(Self(caller))
    }
}

/// Secret of a request: a bearer token, or `?token=` for event streams of browsers.
fn secret(parts: &Parts) -> Option<Cow<'_, str>> {
    let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().into())
    });
    bearer.or_else(|| {
        let query = parts.uri.query()?;
        form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == "token")
            .map(|(_, value)| value)
    })
}
