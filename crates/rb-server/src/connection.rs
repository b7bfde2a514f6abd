//! Incoming connections: HTTP/1 and HTTP/2, with limits on headers and silent clients.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower::ServiceExt as _;

use crate::router::HttpService;

/// Maximum time until the headers of a connection's first request are complete, and of each further HTTP/1 request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of all headers of a request.
const MAX_HEADER_BYTES: u16 = u16::MAX;

/// Serves connections with one configuration.
pub(crate) struct Connections {
    service: HttpService,
    builder: auto::Builder<TokioExecutor>,
}

impl Connections {
    pub(crate) fn new(service: HttpService) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(usize::from(MAX_HEADER_BYTES));
        builder.http2().timer(TokioTimer::new()).max_header_list_size(u32::from(MAX_HEADER_BYTES));
        Self { service, builder }
    }

    /// Serves a connection until it ends. At shutdown, open requests are completed first.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream, watcher: Watcher) {
        let _ = stream.set_nodelay(true); // affects latency only
        let first_request = Arc::new(Notify::new());
        let service = self.service.clone().map_request({
            let first_request = Arc::clone(&first_request);
            move |request: Request<Incoming>| {
                first_request.notify_one();
                request.map(Body::new)
            }
        });
        let connection =
            self.builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        tokio::select! {
            served = watcher.watch(connection) => {
                if let Err(error) = served {
                    tracing::debug!(%error, "connection closed early");
                }
            }
            () = silent(&first_request) => tracing::debug!("connection closed: no request in time"),
        }
    }
}

/// Completes if there is no request within `HEADER_TIMEOUT`. The header timeout of HTTP/1 starts only after the version
/// of the protocol is known, and HTTP/2 has none.
async fn silent(first_request: &Notify) {
    if tokio::time::timeout(HEADER_TIMEOUT, first_request.notified()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}
