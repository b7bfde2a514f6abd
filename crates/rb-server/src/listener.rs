//! The server from its first connection to its end: then there are no new requests, and the open ones finish.

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
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
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
    app.runtime.events.close(); // a stream would not end by itself
    if tokio::time::timeout(DRAIN_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
    if !app.gateway.settled().await {
        tracing::warn!(
            "the database was away at the end: some of what the gateway saw is not stored"
        );
    }
    app.runtime.patterns.flush_uses().await;
    if let Some(exporting) = exporting
        && tokio::time::timeout(EXPORT_WITHIN, exporting).await.is_err()
    {
        tracing::warn!("the last findings could not be exported in time");
    }
    Ok(())
}
