//! Listener and graceful shutdown.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;

use crate::app::Shared;
use crate::connection::Connections;
use crate::router;
use rb_runtime::{cluster, otlp_export, retention};

/// Maximum time for open requests at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time for the OTLP export at shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after a failed accept, for example with too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Serves until `end` completes, then finishes the open requests and stores their data.
pub async fn serve(
    app: Shared,
    listener: TcpListener,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let connections = Arc::new(Connections::new(router::service(&app)));
    let sweeping = app.config.retention.map(|kept| {
        tokio::spawn(retention::run_expiry(Arc::clone(&app.runtime.store), kept)).abort_handle()
    });
    let exporting = app.config.export.clone().map(|config| {
        let (store, counters) =
            (Arc::clone(&app.runtime.store), app.runtime.metrics.exported.clone());
        otlp_export::start(config, store, &app.runtime.events, counters)
    });
    let nodes = tokio::spawn(cluster::relay_events(
        Arc::clone(&app.runtime.store),
        Arc::clone(&app.runtime.events),
    ))
    .abort_handle();
    let messages = Arc::clone(&app.runtime.messages);
    let messages = tokio::spawn(async move { messages.run_refresh().await }).abort_handle();
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
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
                continue;
            }
        };
        let connections = Arc::clone(&connections);
        tokio::spawn(connections.serve(stream, graceful.watcher()));
    }
    drop(listener);
    if let Some(sweeping) = sweeping {
        sweeping.abort();
    }
    nodes.abort();
    messages.abort();
    app.runtime.events.close(); // ends the event streams
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("open requests were aborted after the shutdown timeout");
    }
    if !app.gateway.flush().await {
        tracing::warn!("the database was unavailable at shutdown: some gateway data is not stored");
    }
    app.runtime.patterns.flush_uses().await;
    if let Some(exporting) = exporting
        && tokio::time::timeout(EXPORT_TIMEOUT, exporting).await.is_err()
    {
        tracing::warn!("the OTLP export was aborted after the shutdown timeout");
    }
    Ok(())
}
