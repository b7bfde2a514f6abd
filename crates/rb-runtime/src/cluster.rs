//! Relays events between the nodes of one database.
//!
//! Only events for people go this way; decisions read the store.

use std::sync::Arc;
use std::time::Duration;

use rb_store::Store;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::clock::now_ms;
use crate::events::{Events, StepEvent};

/// Events of this interval are published together.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Relays events in both directions until the task is aborted. Returns at once for a store with one node.
pub async fn relay_events(store: Arc<dyn Store>, events: Arc<Events>) {
    let node = uuid::Uuid::now_v7().simple().to_string();
    let Some(mut incoming) = store.subscribe(&node) else { return };
    let publishing = tokio::spawn(publish(store, Arc::clone(&events), node));
    while let Some(message) = incoming.recv().await {
        // A node of a later version may send an event that this version cannot parse.
        if let Ok(event) = serde_json::from_str::<StepEvent>(&message) {
            events.deliver_local(event);
        }
    }
    publishing.abort();
}

async fn publish(store: Arc<dyn Store>, events: Arc<Events>, node: String) {
    let mut local = events.subscribe_local();
    while let Some(batch) = next_batch(&mut local).await {
        let messages = batch.iter().filter_map(|event| serde_json::to_string(event).ok());
        if let Err(error) = store.publish(&node, now_ms(), messages.collect()).await {
            tracing::debug!(%error, "events not published to other nodes");
        }
        tokio::time::sleep(FLUSH_INTERVAL).await;
    }
}

/// Waits for an event and drains the channel.
async fn next_batch(local: &mut Receiver<StepEvent>) -> Option<Vec<StepEvent>> {
    let mut events = Vec::new();
    match local.recv().await {
        Ok(event) => events.push(event),
        Err(RecvError::Lagged(_)) => {}
        Err(RecvError::Closed) => return None,
    }
    loop {
        match local.try_recv() {
            Ok(event) => events.push(event),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(events),
        }
    }
}
