//! Request bodies and queries: size limit, and validation errors with their path.

use std::sync::Arc;

use axum::body::Body as RawBody;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::Surface;
use crate::error::{ApiError, Fault, Place};

/// A JSON body. An empty body counts as an empty object, since every field of most requests is optional.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Surface> FromRequest<Arc<S>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, surface: &Arc<S>) -> Result<Self, ApiError> {
        let bytes = read(request.into_body(), surface.max_body_bytes()).await?;
        parse(&bytes).map(Self)
    }
}

/// Query string.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let reader = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        serde_path_to_error::deserialize(reader).map(Self).map_err(|error| {
            let loc = places("query", error.path());
            let msg = error.into_inner().to_string();
            ApiError::Unprocessable(vec![Fault { loc, msg, kind: "value_error" }])
        })
    }
}

/// Maximum buffer allocated from the `Content-Length` of a client; larger bodies grow the buffer.
const MAX_PREALLOCATION: usize = 1 << 20;

/// Reads a body up to a limit.
///
/// Chunks are copied at once, so that the connection reuses its read buffer.
pub async fn read(mut body: RawBody, bytes_max: usize) -> Result<Bytes, ApiError> {
    let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if length > bytes_max {
        return Err(ApiError::TooLarge { bytes_max });
    }
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            ApiError::BadRequest(format!("the body could not be read: {error}"))
        })?;
        let Ok(part) = frame.into_data() else { continue }; // trailers
        if part.len() > bytes_max - whole.len() {
            return Err(ApiError::TooLarge { bytes_max });
        }
        if whole.is_empty() && part.len() == length && body.is_end_stream() {
            return Ok(part);
        }
        whole.reserve(part.len().max(length.min(MAX_PREALLOCATION).saturating_sub(whole.len())));
        whole.extend_from_slice(&part);
    }
    Ok(whole.freeze())
}

/// Parses a JSON body.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    parse_borrowed(bytes)
}

/// Parses a JSON body into a type that borrows from it. Only an invalid body is parsed again to find the path of the
/// error.
pub fn parse_borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ApiError> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).or_else(|_| parse_slowly(bytes))
}

/// Parses with the path of an error.
fn parse_slowly<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ApiError> {
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use hyper::body::Frame;

    use super::*;

    /// Body in parts, without a length.
    fn in_parts(parts: &[&'static str]) -> RawBody {
        let frames: Vec<_> = parts
            .iter()
            .map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from_static(part.as_bytes()))))
            .collect();
        RawBody::new(http_body_util::StreamBody::new(stream::iter(frames)))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_up_to_the_limit() {
        let cases: [(RawBody, Option<&str>); 8] = [
            (RawBody::empty(), Some("")),
            (RawBody::from("123456"), Some("123456")),
            (RawBody::from("1234567"), None),
            (in_parts(&[]), Some("")),
            (in_parts(&["123456"]), Some("123456")),
            (in_parts(&["12", "", "34", "56"]), Some("123456")),
            (in_parts(&["12", "34567"]), None),
            (in_parts(&["1234567"]), None),
        ];
        for (at, (body, expected)) in cases.into_iter().enumerate() {
            match (read(body, 6).await, expected) {
                (Ok(whole), Some(expected)) => assert_eq!(whole, expected, "{at}"),
                (Err(ApiError::TooLarge { bytes_max: 6 }), None) => {}
                (other, _) => panic!("{at}: {other:?}"),
            }
        }
    }
}
