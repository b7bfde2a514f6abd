//! HTTP errors: a status and `{"detail": …}`. Internal causes are logged and never sent.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rb_runtime::auth::AuthError;
use rb_runtime::library::LibraryError;
use rb_runtime::operator_messages::MessageError;
use rb_runtime::retrieval::findings_index::RetrievalError;
use rb_runtime::runs::RunError;
use rb_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// Error response.
#[derive(Debug)]
pub enum ApiError {
    /// Invalid fields of the body or the query.
    Unprocessable(Vec<Fault>),
    /// Malformed request.
    BadRequest(String),
    /// Missing, unknown or revoked key.
    Unauthorized(&'static str),
    /// Insufficient rights.
    Forbidden(&'static str),
    /// Missing, or owned by another organisation.
    NotFound(&'static str),
    /// The route has other methods.
    MethodNotAllowed,
    /// Exists already, or cannot be changed.
    Conflict(String),
    /// The body is larger than the limit.
    TooLarge { bytes_max: usize },
    /// Unsupported content type or encoding.
    Unsupported(&'static str),
    /// Rate limit of the key.
    TooManyRequests,
    /// Rate limit of an operation.
    TooSoon(&'static str),
    /// The database is unavailable.
    Unavailable,
    /// Internal error, logged under the request id.
    Internal,
}

/// Result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// Invalid field.
#[derive(Debug, Serialize, ToSchema)]
pub struct Fault {
    /// Path: `body` or `query`, then field names and positions.
    pub loc: Vec<Place>,
    pub msg: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A field name or a position in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Place {
    Name(String),
    Position(usize),
}

impl Fault {
    /// Creates an error for a field.
    pub fn at(path: &[&str], msg: impl Into<String>) -> Self {
        let loc = path.iter().map(|name| Place::Name((*name).to_owned())).collect();
        Self { loc, msg: msg.into(), kind: "value_error" }
    }
}

/// Error with one invalid field.
pub fn unprocessable(path: &[&str], msg: impl Into<String>) -> ApiError {
    ApiError::Unprocessable(vec![Fault::at(path, msg)])
}

/// Body of every error but 422.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Description and remedy.
    pub detail: String,
}

/// Body of a 422.
#[derive(Debug, Serialize, ToSchema)]
pub struct Faults {
    pub detail: Vec<Fault>,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "the store is unavailable");
                Self::Unavailable
            }
            // All retries failed.
            StoreError::VersionConflict => {
                tracing::warn!("giving up after repeated version conflicts");
                Self::Unavailable
            }
            StoreError::TooNew { .. } | StoreError::Failed { .. } => {
                tracing::error!(%error, "the store failed");
                Self::Internal
            }
        }
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::MissingKey => Self::Unauthorized(
                "a key is needed: send `Authorization: Bearer <key>`; `rb keys create` makes one",
            ),
            AuthError::UnknownKey => Self::Unauthorized("this key is not known"),
            AuthError::RevokedKey => Self::Unauthorized("this key was revoked"),
            AuthError::TimedOut => Self::Unavailable,
            AuthError::Store(error) => error.into(),
        }
    }
}

impl From<MessageError> for ApiError {
    fn from(error: MessageError) -> Self {
        match error {
            MessageError::Empty | MessageError::TooLong => {
                unprocessable(&["body", "text"], error.to_string())
            }
            MessageError::UnknownRun => Self::NotFound("there is no such run"),
            MessageError::RunFinished | MessageError::QueueFull => {
                Self::Conflict(error.to_string())
            }
            MessageError::RateLimited => {
                Self::TooSoon("this run was spoken to often; wait a moment")
            }
            MessageError::Store(error) => error.into(),
        }
    }
}

impl From<LibraryError> for ApiError {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Invalid { field, message } => unprocessable(&["body", field], message),
            LibraryError::Forbidden(detail) => Self::Forbidden(detail),
            LibraryError::NotFound(detail) => Self::NotFound(detail),
            LibraryError::Conflict(detail) => Self::Conflict(detail),
            LibraryError::Store(error) => error.into(),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::NotFound => Self::NotFound("there is no such run"),
            RunError::Finished | RunError::NotDecided { .. } => Self::Conflict(error.to_string()),
            RunError::Conflict { .. } | RunError::TimedOut => {
                tracing::warn!(%error, "step not stored");
                Self::Unavailable
            }
            RunError::Store(error) => error.into(),
        }
    }
}

impl From<RetrievalError> for ApiError {
    fn from(error: RetrievalError) -> Self {
        match error {
            RetrievalError::Store(error) => error.into(),
            RetrievalError::Embedding(error) => {
                tracing::error!(%error, "findings not embedded");
                Self::Internal
            }
        }
    }
}

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooManyRequests | Self::TooSoon(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Unprocessable(_) => String::new(), // shown as a list
            Self::BadRequest(what) | Self::Conflict(what) => what.clone(),
            Self::Unauthorized(what)
            | Self::Forbidden(what)
            | Self::NotFound(what)
            | Self::Unsupported(what)
            | Self::TooSoon(what) => (*what).to_owned(),
            Self::MethodNotAllowed => {
                "this route does not take this method; `/docs` lists the routes".to_owned()
            }
            Self::TooLarge { bytes_max } => format!(
                "the body is larger than {bytes_max} bytes; send less, or raise `MAX_BODY_BYTES`"
            ),
            Self::TooManyRequests => {
                "too many requests with this key; wait a second and try again".to_owned()
            }
            Self::Unavailable => "the database is unavailable; try again in a moment".to_owned(),
            Self::Internal => {
                "internal error; the server log has the cause under the `x-request-id` of this response"
                    .to_owned()
            }
        }
    }
}

impl ApiError {
    /// Returns status and text for a page.
    pub fn in_words(&self) -> (StatusCode, String) {
        let said = match self {
            Self::Unprocessable(faults) => {
                faults.iter().map(|fault| fault.msg.as_str()).collect::<Vec<_>>().join("; ")
            }
            Self::BadRequest(_)
            | Self::Unauthorized(_)
            | Self::Forbidden(_)
            | Self::NotFound(_)
            | Self::MethodNotAllowed
            | Self::Conflict(_)
            | Self::TooLarge { .. }
            | Self::Unsupported(_)
            | Self::TooManyRequests
            | Self::TooSoon(_)
            | Self::Unavailable
            | Self::Internal => self.detail(),
        };
        (self.status(), said)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let detail = self.detail();
        let mut response = if let Self::Unprocessable(detail) = self {
            (status, Json(Faults { detail })).into_response()
        } else {
            (status, Json(Problem { detail })).into_response()
        };
        let headers = response.headers_mut();
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
