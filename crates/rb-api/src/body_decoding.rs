//! Long request bodies: decompression, and parsing outside the async threads.

use std::io::Read as _;

use axum::extract::Request;
use axum::http::header;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use rb_http::error::{ApiError, ApiResult};

/// Returns a header as text; empty if it is missing.
pub(crate) fn text_of(request: &Request, name: header::HeaderName) -> String {
    let value = request.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// Decompresses the body, up to the size limit.
pub(crate) fn unpacked(bytes: Bytes, packing: &str, bytes_max: usize) -> ApiResult<Bytes> {
    match packing.to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(bytes),
        "gzip" => {
            let mut plain = Vec::new();
            let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
            MultiGzDecoder::new(&*bytes)
                .take(limit.saturating_add(1))
                .read_to_end(&mut plain)
                .map_err(|error| ApiError::BadRequest(format!("the body is not gzip: {error}")))?;
            if plain.len() > bytes_max {
                return Err(ApiError::TooLarge { bytes_max });
            }
            Ok(plain.into())
        }
        _ => Err(ApiError::Unsupported("the body may be packed with `gzip`, or not at all")),
    }
}

/// Runs parsing and assessment on a blocking thread, because they would delay other requests.
pub(crate) async fn off_the_path<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> ApiResult<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "reading a body broke down");
        ApiError::Internal
    })
}
