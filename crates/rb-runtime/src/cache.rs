//! Bounded caches. Eviction is approximate LRU; losing an entry costs a second read and nothing else.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::{Duration, Instant};

use quick_cache::Equivalent;
use quick_cache::sync::Cache;

/// Caches values for a fixed time, up to a fixed number of entries.
pub struct TtlCache<K, V> {
    entries: Cache<K, (Instant, V)>,
    ttl: Duration,
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    pub fn new(capacity: usize, ttl: Duration) -> Self {
        Self { entries: Cache::new(capacity), ttl }
    }

    /// Returns the value if it is younger than the TTL.
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        let (stored, value) = self.entries.get(key)?;
        (stored.elapsed() < self.ttl).then_some(value)
    }

    /// Returns the value whatever its age, for use while its source is unavailable.
    pub fn get_stale<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub fn insert(&self, key: K, value: V) {
        self.entries.insert(key, (Instant::now(), value));
    }

    pub fn clear(&self) {
        self.entries.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Caches values without expiry, up to a fixed number of entries.
pub struct BoundedCache<K, V>(Cache<K, V>);

impl<K: Eq + Hash, V: Clone> BoundedCache<K, V> {
    pub fn new(capacity: usize) -> Self {
        Self(Cache::new(capacity))
    }

    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.0.get(key)
    }

    pub fn insert(&self, key: K, value: V) {
        self.0.insert(key, value);
    }

    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_expire_and_stay_available_as_stale() {
        let cache = TtlCache::new(4, Duration::ZERO);
        cache.insert("a".to_owned(), 1);
        assert_eq!((cache.get("a"), cache.get_stale("a")), (None, Some(1)));
        let cache = TtlCache::new(4, Duration::from_mins(1));
        cache.insert("a".to_owned(), 1);
        assert_eq!(cache.get("a"), Some(1));
        cache.clear();
        assert_eq!(cache.get_stale("a"), None);
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let cache = TtlCache::new(16, Duration::from_mins(1));
        (0..1_000).for_each(|at| cache.insert(at, at));
        assert!((1..=16).contains(&cache.len()), "{}", cache.len());
    }
}
