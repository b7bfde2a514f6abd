//! What goes wrong, as clients see it: a status and `{"detail": …}`. Causes inside are logged and never sent.

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

/// A request that cannot be answered as asked.
#[derive(Debug)]
pub enum ApiError {
    /// The body or the query is not what it should be, with the places.
    Unprocessable(Vec<Fault>),
    /// The body is no JSON at all, or the request makes no sense.
    BadRequest(String),
    /// No key, or one that is not known or was revoked.
    Unauthorized(&'static str),
    /// The key may not do that.
    Forbidden(&'static str),
    /// Not there, or another organisation's.
    NotFound(&'static str),
    /// The route is there, for other methods.
    MethodNotAllowed,
    /// It exists already, or may not be changed.
    Conflict(String),
    /// The body is larger than the limit.
    TooLarge { bytes_max: usize },
    /// The body is in a form that is not read here.
    Unsupported(&'static str),
    /// The key's allowance is used up for the moment.
    TooManyRequests,
    /// The same thing was done too often just now.
    TooSoon(&'static str),
    /// The database is away for the moment.
    Unavailable,
    /// A fault of ours; what it was stands in the log under the request's id.
    Internal,
}

/// What a handler gives.
pub type ApiResult<T> = Result<T, ApiError>;

/// One thing wrong with a request, and where.
#[derive(Debug, Serialize, ToSchema)]
pub struct Fault {
    /// From the outside in: `body`, then field names and positions.
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
    /// A value that is missing or wrong, at a path of field names.
    pub fn at(path: &[&str], msg: impl Into<String>) -> Self {
        let loc = path.iter().map(|name| Place::Name((*name).to_owned())).collect();
        Self { loc, msg: msg.into(), kind: "value_error" }
    }
}

/// One fault in the body.
pub fn unprocessable(path: &[&str], msg: impl Into<String>) -> ApiError {
    ApiError::Unprocessable(vec![Fault::at(path, msg)])
}

/// How every error but 422 looks.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// What was wrong and what to do, for a person.
    pub detail: String,
}

/// How a 422 looks.
#[derive(Debug, Serialize, ToSchema)]
pub struct Faults {
    pub detail: Vec<Fault>,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "the store is away");
                Self::Unavailable
            }
            // Whoever guards a change tries again by himself; here everything was tried.
            StoreError::VersionConflict => {
                tracing::warn!("a run is changed by others faster than it can be read");
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
            Self::Unavailable => "the database is away; try again in a moment".to_owned(),
            Self::Internal => {
                "a fault in the server; the log has it under the `x-request-id` of this reply"
                    .to_owned()
            }
        }
    }
}

impl ApiError {
    /// The same for a person's eyes.
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
