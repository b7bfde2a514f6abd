//! One connection in: which HTTP it speaks, limits on headers and slow clients, and its end.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::router::Front;

/// A client must have sent its first bytes within this time, and then its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// Headers may be this long in all.
const HEADERS_BYTES_MAX: u16 = u16::MAX;
/// How every connection of HTTP/2 begins, and no request of HTTP/1.
const HTTP2_BEGINS: &[u8] = b"PRI ";
/// Where the first bytes do not come together, the next are looked for after so long, then after twice that, and so on:
/// whoever never sends them must not keep us busy.
const A_MOMENT: Duration = Duration::from_millis(1);

/// How connections are served.
pub(crate) struct Connections {
    front: Front,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Connections {
    pub(crate) fn new(front: Front) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .max_buf_size(usize::from(HEADERS_BYTES_MAX));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2.timer(TokioTimer::new()).max_header_list_size(u32::from(HEADERS_BYTES_MAX));
        Self { front, http1, http2 }
    }

    /// Serves a connection until it ends. When the server ends, one that has not said anything yet is dropped, and on the
    /// others the open requests finish.
    ///
    /// The first bytes are looked at and left where they are: with bytes read beforehand, the buffer for requests would
    /// begin at twice its size, and every open connection has one.
    pub(crate) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        mut closing: watch::Receiver<()>,
        watcher: Watcher,
    ) {
        let _ = stream.set_nodelay(true); // a matter of speed only
        let begun = tokio::select! {
            begun = tokio::time::timeout(HEADERS_WITHIN, speaks_http2(&stream)) => begun,
            _ = closing.changed() => return,
        };
        let Ok(Ok(is_http2)) = begun else { return };
        let stream = TokioIo::new(stream);
        let service = hyper::service::service_fn({
            let connections = Arc::clone(&self);
            move |request| answer(Arc::clone(&connections), request)
        });
        let served = if is_http2 {
            // Few speak it, and all would have to keep room for it.
            Box::pin(watcher.watch(self.http2.serve_connection(stream, service))).await
        } else {
            watcher.watch(self.http1.serve_connection(stream, service)).await
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

async fn answer(
    connections: Arc<Connections>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    Ok(connections.front.answer(request).await)
}

async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut begins = [0; HTTP2_BEGINS.len()];
    let mut pause = A_MOMENT;
    loop {
        let count = stream.peek(&mut begins).await?;
        let is_alike = begins[..count] == HTTP2_BEGINS[..count];
        if !is_alike || count == 0 || count == begins.len() {
            return Ok(is_alike && count > 0);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}
