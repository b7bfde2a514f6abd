//! What every request passes before it reaches its route, whatever that is.
//!
//! These are plain steps and not layers of the router: a router keeps its layers in a box for each route, and every
//! request would copy that box with all that is in it.

use std::panic::AssertUnwindSafe;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::{BoxError, Router};
use futures_util::FutureExt as _;
use tower::ServiceExt as _;
use tower_http::timeout::TimeoutBody;

use crate::app::Shared;
use crate::{api, neighbours, slashes};
use rb_http::error::ApiError;

/// The way in for requests.
pub(crate) struct Front {
    app: Shared,
    routes: Router,
}

impl Front {
    pub(crate) fn new(app: Shared) -> Self {
        let routes = api::router(Shared::clone(&app));
        Self { app, routes }
    }

    /// Answers a request. A panic on the way costs this answer and nothing else.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = slashes::encode(request);
        let stranger = neighbours::stranger(&self.app, &request);
        if let Some(why) = stranger
            && self.app.is_open().await
        {
            return ApiError::Forbidden(why).into_response();
        }
        let within = self.app.config.request_timeout;
        let request = request.map(|body| Body::new(TimeoutBody::new(within, body)));
        let routed = AssertUnwindSafe(self.routes.clone().oneshot(request)).catch_unwind();
        match routed.await {
            Ok(Ok(response)) => response,
            Err(_) => ApiError::Internal.into_response(),
        }
    }
}
