//! Ids in addresses, decoded; what cannot be decoded is refused like anything else.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The variable segments of the address.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(segments)) => Ok(Self(segments)),
            Err(rejection) => {
                Err(ApiError::BadRequest(format!("the address: {}", rejection.body_text())))
            }
        }
    }
}
