//! Fields that a form sends.

use std::collections::HashMap;

use axum::extract::{FromRequest, Request};
use axum::response::Response;

use super::layout;
use crate::app::Shared;
use crate::body;

const FORM_BYTES_MAX: usize = 256 << 10;

/// The fields by name; of fields with the same name, the last.
pub(super) struct Form(HashMap<String, String>);

impl Form {
    /// The field without spaces around it; empty where it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }
}

impl FromRequest<Shared> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Response> {
        let bytes = body::read(request, FORM_BYTES_MAX).await.map_err(layout::problem)?;
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}
