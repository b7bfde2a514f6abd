//! Concurrent callers.

use std::sync::Arc;

use super::fixtures::{ALL, a, api_key, key, puts, step};
use super::{Broken, Checked, put, same, there};
use rb_store::{Change, Store, StoreError};

type SharedStore = Arc<dyn Store>;

const CALLERS: u32 = 16;
const STEPS_EACH: u32 = 20;

fn lost(error: &tokio::task::JoinError) -> Broken {
    Broken::Store(StoreError::Unavailable(error.to_string()))
}

pub(super) async fn concurrent_callers_write_one_run(store: SharedStore) -> Checked {
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for at in 0..STEPS_EACH {
                    put(&store, puts(step("a", "r", at * CALLERS + caller))).await?;
                    // All callers also write the same step.
                    put(&store, puts(step("a", "r", 0))).await?;
                }
                Ok::<(), Broken>(())
            })
        })
        .collect();
    for caller in callers {
        caller.await.map_err(|error| lost(&error))??;
    }
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    let found: Vec<u32> = steps.iter().map(|step| step.step_index).collect();
    same("indices", found, (0..CALLERS * STEPS_EACH).collect())?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("steps", run.step_count, u64::from(CALLERS * STEPS_EACH))?;
    super::recount(store, &[]).await
}

pub(super) async fn a_failing_call_does_not_affect_concurrent_calls(store: SharedStore) -> Checked {
    put(&store, Change::PutKey(Box::new(api_key("a", "k")))).await?;
    let callers: Vec<_> = (0..60_u32)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut changes = vec![puts(step("a", "r", caller))];
                if caller % 3 == 0 {
                    let mut twin = api_key("a", "k");
                    twin.key_id = format!("twin {caller}");
                    changes.push(Change::PutKey(Box::new(twin)));
                }
                store.apply(changes).await.is_ok()
            })
        })
        .collect();
    for (caller, answer) in (0_u32..).zip(callers) {
        let is_kept = answer.await.map_err(|error| lost(&error))?;
        same(&format!("caller {caller} is answered well"), is_kept, caller % 3 != 0)?;
    }
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    let found: Vec<u32> = steps.iter().map(|step| step.step_index).collect();
    same("indices", found, (0..60).filter(|caller| caller % 3 != 0).collect())?;
    super::recount(store, &[]).await
}

pub(super) async fn an_acknowledged_write_is_visible_at_once(store: SharedStore) -> Checked {
    for index in 0..50 {
        put(&store, puts(step("a", "r", index))).await?;
        let steps = store.steps(&key("a", "r"), index, 1).await?;
        same("the step just put", steps.len(), 1)?;
    }
    Ok(())
}
