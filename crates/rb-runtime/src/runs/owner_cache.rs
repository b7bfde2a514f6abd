//! Cache from run id to organisation, for callers whose key belongs to no organisation.

use crate::cache::BoundedCache;

/// A few megabytes.
const CACHE_CAPACITY: usize = 20_000;

/// Organisations by run id.
pub struct RunOwnerCache(BoundedCache<String, String>);

impl Default for RunOwnerCache {
    fn default() -> Self {
        Self(BoundedCache::new(CACHE_CAPACITY))
    }
}

impl RunOwnerCache {
    pub fn get(&self, run_id: &str) -> Option<String> {
        self.0.get(run_id)
    }

    /// Replaces the owner: of several runs with one id, the newest is meant.
    pub fn set(&self, run_id: &str, org: &str) {
        self.0.insert(run_id.to_owned(), org.to_owned());
    }
}
