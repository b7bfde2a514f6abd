//! The other nodes on the same database: what happens here is told to them, and what happens there is heard here.
//!
//! Only what people watch goes this way. What nodes decide by, they read from the store.

use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::app::Shared;
use crate::events::StepEvent;

/// What happens within this time is told together.
const TOLD_EVERY: Duration = Duration::from_millis(50);

/// Tells and hears for as long as the server runs; a store that only this node uses has nobody to hear.
pub(crate) async fn keep_in_touch(app: Shared) {
    let node = uuid::Uuid::now_v7().simple().to_string();
    let Some(mut hearing) = app.store.subscribe(&node) else { return };
    let telling = tokio::spawn(tell(Shared::clone(&app), node));
    while let Some(message) = hearing.recv().await {
        // A message of a later version is no event that this one knows.
        if let Ok(event) = serde_json::from_str::<StepEvent>(&message) {
            app.events.pass_on(event);
        }
    }
    telling.abort();
}

async fn tell(app: Shared, node: String) {
    let mut own = app.events.listen_to_own();
    while let Some(events) = next(&mut own).await {
        let messages = events.iter().filter_map(|event| serde_json::to_string(event).ok());
        if let Err(error) =
            app.store.publish(&node, crate::clock::now_ms(), messages.collect()).await
        {
            tracing::debug!(%error, "other nodes were not told of some steps");
        }
        tokio::time::sleep(TOLD_EVERY).await;
    }
}

/// Waits for something to tell, and takes all there is.
async fn next(own: &mut Receiver<StepEvent>) -> Option<Vec<StepEvent>> {
    let mut events = Vec::new();
    match own.recv().await {
        Ok(event) => events.push(event),
        Err(RecvError::Lagged(_)) => {}
        Err(RecvError::Closed) => return None,
    }
    loop {
        match own.try_recv() {
            Ok(event) => events.push(event),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(events),
        }
    }
}
