//! Connections in: limits on headers and slow clients; and the way out: no new requests, the open ones finish.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;

use crate::app::Shared;
use crate::front::Front;
use crate::{export, nodes, retention};

/// A client must have sent its headers within this time.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// Headers may be this long in all.
const HEADERS_BYTES_MAX: u16 = u16::MAX;
/// Open requests have this long to finish when the server ends.
const DRAIN_WITHIN: Duration = Duration::from_secs(20);
/// The last findings have this long to reach the collector.
const EXPORT_WITHIN: Duration = Duration::from_secs(5);
/// After a failed accept (too many open files), wait this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `end` is ready, then lets the open requests finish and stores what they told.
pub async fn serve(
    app: Shared,
    listener: TcpListener,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let front = Arc::new(Front::new(Shared::clone(&app)));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(usize::from(HEADERS_BYTES_MAX));
    builder.http2().timer(TokioTimer::new()).max_header_list_size(u32::from(HEADERS_BYTES_MAX));
    let sweeping = app
        .config
        .retention
        .map(|kept| tokio::spawn(retention::keep_for(Arc::clone(&app.store), kept)).abort_handle());
    let exporting = export::start(&app);
    let nodes = tokio::spawn(nodes::keep_in_touch(Shared::clone(&app))).abort_handle();
    let hands = Arc::clone(&app.hands);
    let hands = tokio::spawn(async move { hands.keep_looking().await }).abort_handle();
    let graceful = GracefulShutdown::new();
    let mut end = pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true); // a matter of speed only
        let service = hyper::service::service_fn({
            let front = Arc::clone(&front);
            move |request| answer(Arc::clone(&front), request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if let Some(sweeping) = sweeping {
        sweeping.abort();
    }
    nodes.abort();
    hands.abort();
    app.events.close(); // a stream would not end by itself
    if tokio::time::timeout(DRAIN_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
    if !app.gateway.settled().await {
        tracing::warn!(
            "the database was away at the end: some of what the gateway saw is not stored"
        );
    }
    app.patterns.write_uses().await;
    if let Some(exporting) = exporting
        && tokio::time::timeout(EXPORT_WITHIN, exporting).await.is_err()
    {
        tracing::warn!("the last findings could not be exported in time");
    }
    Ok(())
}

async fn answer(front: Arc<Front>, request: Request<Incoming>) -> Result<Response, Infallible> {
    Ok(front.answer(request).await)
}
