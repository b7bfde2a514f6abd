//! Submitted forms and query fields.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use axum::response::Response;

use crate::DashboardState;
use crate::layout;
use rb_http::body;

const FORM_BYTES_MAX: usize = 256 << 10;

/// Decoded field of a query string.
pub(crate) fn field(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

/// Fields by name; the last one of equal names.
pub(crate) struct Form(BTreeMap<String, String>);

impl Form {
    /// Returns a trimmed field; empty if it is missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }

    /// Returns the fields with a prefix, by the rest of their names.
    pub(crate) fn under<'a>(&'a self, prefix: &str) -> BTreeMap<&'a str, &'a str> {
        let named = |(name, value): (&'a String, &'a String)| {
            Some((name.strip_prefix(prefix)?, value.trim()))
        };
        self.0.iter().filter_map(named).collect()
    }
}

impl FromRequest<DashboardState> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, _: &DashboardState) -> Result<Self, Response> {
        let bytes =
            body::read(request.into_body(), FORM_BYTES_MAX).await.map_err(layout::problem)?;
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}
