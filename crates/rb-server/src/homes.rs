//! Which organisation a run belongs to, for callers that belong to none.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Runs remembered at once; a few megabytes.
const REMEMBERED_MAX: usize = 20_000;

/// Organisations by run.
#[derive(Default)]
pub(crate) struct Homes(Mutex<HashMap<String, String>>);

impl Homes {
    pub(crate) fn get(&self, run_id: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(run_id).cloned()
    }

    /// The newest run of that id is meant from now on.
    pub(crate) fn set(&self, run_id: &str, org: &str) {
        let mut homes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if homes.len() >= REMEMBERED_MAX {
            homes.clear();
        }
        homes.insert(run_id.to_owned(), org.to_owned());
    }
}
