//! Semantic search over the findings of a codebase.
//!
//! A score is the calibrated similarity of `rb_embed`. SDKs pass a minimum of 0.25; the server's default is 0.5. For the
//! 33 questions to 16 findings in `tests.rs`, 0.25 returns the right finding for 31 and 7 wrong ones, 0.5 returns it
//! for 22 and no wrong one. With the plain cosine, 0.25 would return 25 wrong ones and 0.5 two right ones less.
//!
//! The findings and vectors of recently searched codebases are cached, up to `MAX_BYTES`; the least recently used
//! codebase is evicted first. After a change only the changed findings are embedded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rb_embed::{Calibration, DIMS, Index, Owner, SearchParams, embed};
use rb_store::{FindingRow, Store, StoreError};

/// Maximum bytes of all cached codebases.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Delay after which changes of other nodes are visible.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Bytes of a finding besides its texts.
const FINDING_OVERHEAD_BYTES: usize = 512 + DIMS;

/// Organisation and codebase.
type CodebaseKey = (String, String);

/// Cached codebases.
pub struct FindingsIndex {
    codebases: Mutex<BTreeMap<CodebaseKey, CacheEntry>>,
    /// Counts changes, so that an index read before a change expires.
    changes: AtomicU64,
    max_bytes: usize,
}

#[derive(Clone)]
struct CacheEntry {
    index: Arc<CodebaseIndex>,
    /// `None` after a change.
    read_at: Option<Instant>,
    used_at: Instant,
}

/// Findings of one codebase with their vectors.
struct CodebaseIndex {
    findings: BTreeMap<String, Arc<FindingRow>>,
    vectors: Index<(), String>,
    bytes: usize,
}

/// A finding with its score from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingHit {
    pub finding: Arc<FindingRow>,
    pub score: f64,
}

/// Reason why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum RetrievalError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("findings not embedded: {0}")]
    Embedding(#[from] tokio::task::JoinError),
}

impl Default for FindingsIndex {
    fn default() -> Self {
        Self { codebases: Mutex::default(), changes: AtomicU64::new(0), max_bytes: MAX_BYTES }
    }
}

impl FindingsIndex {
    /// Returns the findings nearest to a query, best first, equal ones by id.
    pub async fn search(
        &self,
        store: &dyn Store,
        (org, codebase): (&str, &str),
        query: &str,
        (count_max, score_min): (usize, f64),
    ) -> Result<Vec<FindingHit>, RetrievalError> {
        Ok(self.index(store, org, codebase).await?.search(query, count_max, score_min))
    }

    /// Expires a codebase after a change on this node.
    pub fn invalidate(&self, org: &str, codebase: &str) {
        let mut codebases = self.codebases.lock();
        self.changes.fetch_add(1, Ordering::SeqCst);
        if let Some(entry) = codebases.get_mut(&(org.to_owned(), codebase.to_owned())) {
            entry.read_at = None;
        }
    }

    async fn index(
        &self,
        store: &dyn Store,
        org: &str,
        codebase: &str,
    ) -> Result<Arc<CodebaseIndex>, RetrievalError> {
        let key = (org.to_owned(), codebase.to_owned());
        let known = {
            let mut codebases = self.codebases.lock();
            codebases.get_mut(&key).map(|entry| {
                entry.used_at = Instant::now();
                entry.clone()
            })
        };
        let is_fresh = |at: Instant| at.elapsed() < CACHE_TTL;
        if let Some(entry) = &known
            && entry.read_at.is_some_and(is_fresh)
        {
            return Ok(Arc::clone(&entry.index));
        }
        let (changes, read_at) = (self.changes.load(Ordering::SeqCst), Instant::now());
        let rows = store.findings(org, codebase).await?;
        // Embedding many new findings is slow.
        let built = tokio::task::spawn_blocking(move || {
            CodebaseIndex::new(rows, known.as_ref().map(|entry| &*entry.index))
        });
        let built = Arc::new(built.await?);
        let mut codebases = self.codebases.lock();
        let unchanged = self.changes.load(Ordering::SeqCst) == changes;
        let entry = CacheEntry {
            index: Arc::clone(&built),
            read_at: unchanged.then_some(read_at),
            used_at: read_at,
        };
        codebases.insert(key, entry);
        evict(&mut codebases, self.max_bytes);
        Ok(built)
    }
}

/// Evicts the least recently used codebases until the rest fits.
fn evict(codebases: &mut BTreeMap<CodebaseKey, CacheEntry>, max_bytes: usize) {
    let mut bytes: usize = codebases.values().map(|entry| entry.index.bytes).sum();
    while bytes > max_bytes {
        let oldest = codebases.iter().min_by_key(|(_, entry)| entry.used_at);
        let Some((key, entry)) = oldest.map(|(key, entry)| (key.clone(), entry.clone())) else {
            return;
        };
        bytes -= entry.index.bytes;
        codebases.remove(&key);
    }
}

impl CodebaseIndex {
    /// Indexes rows, reusing the vectors of unchanged findings in `before`.
    fn new(rows: Vec<FindingRow>, before: Option<&Self>) -> Self {
        let mut vectors = before.map_or_else(|| Index::new(DIMS), |before| before.vectors.clone());
        let mut findings = BTreeMap::new();
        let mut bytes = 0;
        for row in rows {
            bytes += bytes_of(&row);
            let known = before.and_then(|before| before.findings.get(&row.finding_id));
            let is_embedded = known.is_some_and(|known| known.content == row.content);
            if !is_embedded {
                // All vectors come from one embedder, so the dimensions agree.
                let vector = embed(&row.content);
                let _ = vectors.insert(Owner::Shared, row.finding_id.clone(), &vector);
            }
            findings.insert(row.finding_id.clone(), Arc::new(row));
        }
        for removed in before.iter().flat_map(|before| before.findings.keys()) {
            if !findings.contains_key(removed) {
                vectors.remove(&Owner::Shared, removed);
            }
        }
        Self { findings, vectors, bytes }
    }

    fn search(&self, query: &str, count_max: usize, score_min: f64) -> Vec<FindingHit> {
        let wanted = SearchParams { max_hits: count_max, min_cosine: cosine_min(score_min) };
        let hits = self.vectors.nearest_all_owners(&embed(query), wanted).unwrap_or_default();
        let found = hits.iter().filter_map(|hit| {
            let finding = Arc::clone(self.findings.get(hit.id)?);
            Some(FindingHit { finding, score: score(hit.cosine) })
        });
        found.collect()
    }
}

fn score(cosine: f32) -> f64 {
    f64::from(Calibration::STATIC_MODEL.similarity(cosine))
}

/// Cosine of a minimum score. A minimum of 0 includes negative cosines.
#[expect(clippy::cast_possible_truncation, reason = "a threshold needs no more digits")]
fn cosine_min(score_min: f64) -> f32 {
    if score_min <= 0.0 { -1.0 } else { Calibration::STATIC_MODEL.cosine_at(score_min as f32) }
}

fn bytes_of(row: &FindingRow) -> usize {
    let metadata: usize =
        row.metadata.iter().map(|(name, value)| name.len() + json_bytes(value)).sum();
    let texts = row.org.len() + row.codebase.len() + 3 * row.finding_id.len();
    FINDING_OVERHEAD_BYTES + texts + row.content.len() + row.file_path.len() + metadata
}

/// Approximate size of a value in memory.
fn json_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(json_bytes).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + json_bytes(value)).sum()
        }
    };
    32 + inside
}

#[cfg(test)]
mod tests;
