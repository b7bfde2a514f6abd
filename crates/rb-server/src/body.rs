//! Bodies and queries in: read up to the limit, and refused with the place of the fault.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::app::Shared;
use crate::error::{ApiError, Fault, Place};

/// A JSON body. An empty body counts as an empty object, since every field of most requests is optional.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, ApiError> {
        let bytes = read(request, app.config.body_bytes_max).await?;
        parse(&bytes).map(Self)
    }
}

/// The query of the address.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let reader = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        serde_path_to_error::deserialize(reader).map(Self).map_err(|error| {
            let loc = places("query", error.path());
            let msg = error.into_inner().to_string();
            ApiError::Unprocessable(vec![Fault { loc, msg, kind: "value_error" }])
        })
    }
}

/// The whole body, up to the limit.
pub(crate) async fn read(request: Request, bytes_max: usize) -> Result<Bytes, ApiError> {
    let body = Limited::new(request.into_body(), bytes_max);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::TooLarge { bytes_max }),
        Err(error) => Err(ApiError::BadRequest(format!("the body could not be read: {error}"))),
    }
}

/// A body's JSON as `T`.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    parse_borrowed(bytes)
}

/// The same for a `T` that borrows from the body.
pub(crate) fn parse_borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ApiError> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let loc = places("body", error.path());
        fault(loc, error.inner())
    })?;
    reader.end().map_err(|error| fault(vec![Place::Name("body".to_owned())], &error))?;
    Ok(value)
}

fn fault(loc: Vec<Place>, error: &serde_json::Error) -> ApiError {
    if error.is_data() {
        return ApiError::Unprocessable(vec![Fault {
            loc,
            msg: error.to_string(),
            kind: "value_error",
        }]);
    }
    ApiError::BadRequest(format!("the body is not JSON: {error}"))
}

fn places(part: &str, path: &serde_path_to_error::Path) -> Vec<Place> {
    let inner = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(Place::Position(*index)),
        Segment::Map { key } => Some(Place::Name(key.clone())),
        Segment::Enum { variant } => Some(Place::Name(variant.clone())),
        Segment::Unknown => None,
    });
    std::iter::once(Place::Name(part.to_owned())).chain(inner).collect()
}
