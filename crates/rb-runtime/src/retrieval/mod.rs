//! Retrieval of guidance patterns and findings by meaning.
//!
//! All patterns are in memory. A change made on this node is visible to the next query, one made by another node within
//! `REFRESH_INTERVAL`. E1 patterns are visible to their organisation only, E2 and E3 patterns to all. A pattern matches
//! if the similarity reaches the gate of its tier and its own threshold.

/// Embedder of the monitors.
pub mod embedding;
/// Embedding backend of retrieval.
pub mod embedding_backend;
/// Findings by meaning.
pub mod findings_index;
/// Retrieval for a decision.
pub mod lookup;
/// Fields of patterns under all their names.
pub mod pattern_fields;
/// Monthly quota.
pub mod quota;
/// Patterns of a new installation.
pub mod starter;

mod pattern_index;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rb_engine::guidance::render::Family;
use rb_engine::guidance::{Pattern, Tier};
use rb_store::{Change, PatternRow, Result, Store};

use crate::clock::now_ms;
use embedding_backend::{EmbeddingBackend, EmbeddingError};
use pattern_index::{PatternIndex, PreparedChange, QueryVectors};

/// Interval between two reads of the change log.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before use counts are written, in one batch.
const USES_FLUSH_DELAY: Duration = Duration::from_secs(1);
/// Use counts buffered between two writes; more are dropped.
const MAX_PENDING_USES: usize = 10_000;
/// Maximum wait of a query for a refresh. A large library takes longer to load after the start; queries then search what
/// is loaded.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(1);
/// Changes read and applied in one batch.
const CHANGES_BATCH: u32 = 500;
/// Patterns sent to the embedding backend at once.
const EMBED_BATCH: usize = 64;
/// Delay before a failed call of the embedding backend is retried.
const EMBED_RETRY_DELAY: Duration = Duration::from_secs(15);

/// Query for patterns.
#[derive(Debug, Clone)]
pub struct PatternQuery<'a> {
    pub org: &'a str,
    /// `None` searches E1 and E2, or returns the standing rules if `context` is empty.
    pub tier: Option<Tier>,
    pub context: &'a str,
    pub failure_type: Option<&'a str>,
    /// Model that reads the pattern; empty for any.
    pub model: &'a str,
    pub top_k: usize,
}

/// A pattern that matches a query.
#[derive(Debug, Clone)]
pub struct Match {
    pub row: PatternRow,
    pub tier: Tier,
    /// From 0 to 1; 1 for a standing rule.
    pub similarity: f64,
}

impl Match {
    /// Converts to the engine's type.
    pub fn pattern(&self) -> Pattern {
        let body = pattern_fields::body(self.tier, &self.row.fields);
        Pattern { id: self.row.pattern_id.clone(), body }
    }
}

/// Minimum similarity by tier.
#[derive(Debug, Clone, Copy)]
pub struct Gates {
    pub e1: f64,
    pub e2: f64,
}

/// Finds patterns by meaning.
pub struct PatternRetriever {
    store: Arc<dyn Store>,
    gates: Gates,
    backend: Option<EmbeddingBackend>,
    index: RwLock<PatternIndex>,
    freshness: Mutex<Freshness>,
    /// Held during a refresh.
    refreshing: Arc<tokio::sync::Mutex<()>>,
    /// Held while pending patterns are embedded.
    embedding: tokio::sync::Mutex<()>,
    /// Organisation, tier and id of used patterns.
    uses: Mutex<Vec<(String, String, String)>>,
}

/// Age of the index relative to the store.
#[derive(Default)]
struct Freshness {
    /// Time of the last complete refresh; `None` after a change on this node.
    refreshed_at: Option<Instant>,
    /// Number of changes made on this node.
    local_changes: u64,
    /// Set by the first complete refresh.
    is_loaded: bool,
    /// Start of the refresh in progress.
    refresh_started: Option<Instant>,
}

impl Freshness {
    /// Remaining time a query waits for the refresh in progress, or for one it starts.
    fn wait_budget(&self) -> Duration {
        let elapsed = self.refresh_started.map_or(Duration::ZERO, |since| since.elapsed());
        MAX_REFRESH_WAIT.saturating_sub(elapsed)
    }
}

impl PatternRetriever {
    pub fn new(
        store: Arc<dyn Store>,
        gates: Gates,
        backend: Option<EmbeddingBackend>,
    ) -> Arc<Self> {
        let index = PatternIndex::new(backend.as_ref().map(|_| EmbeddingBackend::CALIBRATION));
        Arc::new(Self {
            store,
            gates,
            backend,
            index: RwLock::new(index),
            freshness: Mutex::default(),
            refreshing: Arc::default(),
            embedding: tokio::sync::Mutex::default(),
            uses: Mutex::default(),
        })
    }

    /// Starts loading the patterns in the background.
    pub fn preload(self: &Arc<Self>) {
        let retriever = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = retriever.refresh().await {
                tracing::warn!(%error, "patterns not loaded yet");
            }
        });
    }

    /// Makes the next query refresh, after a change on this node.
    pub fn invalidate(&self) {
        let mut freshness = self.freshness.lock();
        freshness.refreshed_at = None;
        freshness.local_changes += 1;
    }

    /// Returns matching patterns, best first.
    pub async fn find(self: &Arc<Self>, query: &PatternQuery<'_>) -> Result<Vec<Match>> {
        self.refresh().await?;
        let tiers: &[Tier] = match query.tier {
            Some(Tier::E1) => &[Tier::E1],
            Some(Tier::E2) => &[Tier::E2],
            Some(Tier::E3) => &[Tier::E3],
            None if query.context.trim().is_empty() => &[Tier::E3],
            None => &[Tier::E1, Tier::E2],
        };
        let vectors = self.query_vectors(query.context, tiers).await;
        let index = self.index.read();
        let mut found = Vec::new();
        for tier in tiers {
            found.extend(match tier {
                Tier::E1 => index.nearest(Tier::E1, &vectors, query, self.gates.e1),
                Tier::E2 => index.nearest(Tier::E2, &vectors, query, self.gates.e2),
                Tier::E3 => index.rules(query),
            });
        }
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        found.truncate(query.top_k);
        Ok(found)
    }

    /// Counts the use of patterns; the counts are written later in one batch.
    pub fn record_uses(self: &Arc<Self>, matches: &[Match]) {
        let mut uses = self.uses.lock();
        if matches.is_empty() || uses.len() + matches.len() > MAX_PENDING_USES {
            return;
        }
        let is_first = uses.is_empty();
        uses.extend(matches.iter().map(|matched| {
            let row = &matched.row;
            (row.org.clone(), row.tier.clone(), row.pattern_id.clone())
        }));
        if is_first {
            let retriever = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(USES_FLUSH_DELAY).await;
                retriever.flush_uses().await;
            });
        }
    }

    /// Writes the buffered use counts.
    pub async fn flush_uses(&self) {
        let used = std::mem::take(&mut *self.uses.lock());
        if used.is_empty() {
            return;
        }
        let change = Change::UsePatterns { used, at_ms: now_ms() };
        if let Err(error) = self.store.apply(vec![change]).await {
            tracing::warn!(%error, "pattern uses not counted");
        }
    }

    /// Embeds a context, by the backend if all patterns have its vectors.
    async fn query_vectors(&self, context: &str, tiers: &[Tier]) -> QueryVectors {
        if tiers == [Tier::E3] || context.trim().is_empty() {
            return QueryVectors::none();
        }
        let texts = pattern_index::query_texts(context);
        let is_ready = || self.index.read().has_backend_vectors();
        if let Some(backend) = self.backend.as_ref().filter(|_| is_ready()) {
            match backend.embed(&texts).await {
                Ok(vectors) => return QueryVectors::backend(vectors),
                Err(EmbeddingError::CoolingDown) => {}
                Err(error) => {
                    tracing::warn!(%error, "embedding backend failed; using the built-in vectors");
                }
            }
        }
        QueryVectors::builtin(&texts)
    }

    /// Applies new changes unless the last refresh is recent. Returns with the current index if the refresh takes too
    /// long, or fails after the first complete one.
    async fn refresh(self: &Arc<Self>) -> Result<()> {
        if self.is_fresh() {
            return Ok(());
        }
        let wait_budget = self.freshness.lock().wait_budget();
        let waiting = tokio::time::timeout(wait_budget, Arc::clone(&self.refreshing).lock_owned());
        let Ok(guard) = waiting.await else { return Ok(()) };
        if self.is_fresh() {
            return Ok(());
        }
        self.freshness.lock().refresh_started = Some(Instant::now());
        let retriever = Arc::clone(self);
        let reading = tokio::spawn(async move {
            let result = retriever.read_changes().await;
            retriever.freshness.lock().refresh_started = None;
            drop(guard);
            result
        });
        match tokio::time::timeout(MAX_REFRESH_WAIT, reading).await {
            Ok(Ok(Err(error))) if self.freshness.lock().is_loaded => {
                tracing::warn!(%error, "patterns may be out of date");
                Ok(())
            }
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                tracing::error!(%error, "patterns not read");
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    async fn read_changes(self: &Arc<Self>) -> Result<()> {
        loop {
            let local_changes = self.freshness.lock().local_changes;
            let version = self.index.read().version;
            let changes = self.store.pattern_changes(version, CHANGES_BATCH).await?;
            let is_last_batch = changes.len() < CHANGES_BATCH as usize;
            if let Some((version, _)) = changes.last() {
                let version = *version;
                let retriever = Arc::clone(self);
                let work = move || retriever.apply(version, &changes);
                if let Err(error) = tokio::task::spawn_blocking(work).await {
                    tracing::error!(%error, "pattern changes not applied");
                }
                if self.backend.is_some() {
                    tokio::spawn(Arc::clone(self).embed_pending());
                }
            }
            if is_last_batch {
                let mut freshness = self.freshness.lock();
                freshness.is_loaded = true;
                // A change made on this node meanwhile may be missing.
                freshness.refreshed_at =
                    (freshness.local_changes == local_changes).then(Instant::now);
                return Ok(());
            }
        }
    }

    /// Applies changes. Vectors are computed before the index is locked.
    fn apply(&self, version: u64, changes: &[(u64, rb_store::PatternChange)]) {
        let prepared: Vec<PreparedChange> =
            changes.iter().filter_map(|(_, change)| PreparedChange::new(change)).collect();
        let mut index = self.index.write();
        for change in prepared {
            index.apply(change);
        }
        index.version = version;
    }

    /// Embeds pending patterns by the backend; until all are embedded, queries use the built-in vectors.
    async fn embed_pending(self: Arc<Self>) {
        let Some(backend) = &self.backend else { return };
        let _guard = self.embedding.lock().await;
        loop {
            let patterns = self.index.read().pending(EMBED_BATCH);
            if patterns.is_empty() {
                return;
            }
            let situations: Vec<Vec<String>> =
                patterns.iter().map(|pattern| pattern.situations()).collect();
            match backend.embed(&situations.concat()).await {
                Ok(vectors) => {
                    let mut vectors = vectors.as_slice();
                    let mut index = self.index.write();
                    for (pattern, texts) in patterns.iter().zip(&situations) {
                        let (own, rest) = vectors.split_at(texts.len().min(vectors.len()));
                        vectors = rest;
                        if let Err(error) = index.add_backend_vectors(pattern, own) {
                            tracing::warn!(%error, "embedding backend unusable; using the built-in vectors");
                            return;
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "patterns not embedded by the backend; retrying");
                    tokio::time::sleep(EMBED_RETRY_DELAY).await;
                }
            }
        }
    }

    fn is_fresh(&self) -> bool {
        self.freshness.lock().refreshed_at.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL)
    }
}

/// Returns `true` if a pattern of a model family is meant for a model; an unknown model gets every pattern.
fn applies_to_model(family: Option<&str>, model: &str) -> bool {
    let Some(family) = family.filter(|family| !family.is_empty()) else {
        return true;
    };
    model.is_empty()
        || model.to_ascii_lowercase().contains(&family.to_ascii_lowercase())
        || (Family::of_model(family) != Family::default()
            && Family::of_model(family) == Family::of_model(model))
}
