//! Fields that a form sends.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use axum::response::Response;

use super::layout;
use crate::app::Shared;
use rb_http::body;
use rb_http::error::{ApiError, ApiResult};

const FORM_BYTES_MAX: usize = 256 << 10;

/// One field of an address, decoded.
pub(super) fn field(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

/// Fields as a route of the API takes them.
pub(super) fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> ApiResult<T> {
    serde_json::from_value(value).map_err(|error| ApiError::BadRequest(error.to_string()))
}

/// The fields by name; of fields with the same name, the last.
pub(super) struct Form(BTreeMap<String, String>);

impl Form {
    /// The field without spaces around it; empty where it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }

    /// The fields whose names begin so, with the rest of the name.
    pub(super) fn under<'a>(&'a self, prefix: &str) -> BTreeMap<&'a str, &'a str> {
        let named = |(name, value): (&'a String, &'a String)| {
            Some((name.strip_prefix(prefix)?, value.trim()))
        };
        self.0.iter().filter_map(named).collect()
    }
}

impl FromRequest<Shared> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Response> {
        let bytes =
            body::read(request.into_body(), FORM_BYTES_MAX).await.map_err(layout::problem)?;
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}
