//! Findings by meaning: the findings of a codebase with their embeddings, kept in memory while they are asked for.
//!
//! **What a score is.** The calibrated similarity of `rb_embed`: how likely question and finding speak of the same
//! thing. Clients ask for 0.25, or for the server's 0.5 if they ask for nothing, and both should be of use. Of 33
//! questions to 16 findings (`recall/tests.rs`), 0.25 shows the right finding to 31 and 7 others beside; 0.5 shows it
//! to 22 and nothing else. With the plain cosine 0.25 would show 25 others, and 0.5 two right ones less.
//!
//! **What is kept.** For each codebase asked for lately its findings and their vectors, up to `BYTES_MAX` in all;
//! the codebase that was not asked for the longest goes first. When its findings change, only those are embedded
//! anew.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rb_embed::{Calibration, DIMS, Index, Owner, SearchParams, embed};
use rb_store::{FindingRow, Store};

use crate::error::{ApiError, ApiResult};

/// All findings in memory, with their vectors.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// For how long the findings of a codebase are believed; a change made here is seen at once.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// What a finding costs beside its texts: its row, its place in the maps, its vector.
const FINDING_BYTES: usize = 512 + DIMS;

/// An organisation and one of its codebases.
type Name = (String, String);

/// The findings in memory.
pub(crate) struct Recall {
    shelves: Mutex<BTreeMap<Name, Kept>>,
    /// Counts changes, so that a shelf read before a change is not believed after it.
    changes: AtomicU64,
    bytes_max: usize,
}

#[derive(Clone)]
struct Kept {
    shelf: Arc<Shelf>,
    /// `None` once something changed.
    read_at: Option<Instant>,
    used_at: Instant,
}

/// The findings of one codebase.
struct Shelf {
    findings: BTreeMap<String, Arc<FindingRow>>,
    vectors: Index<(), String>,
    bytes: usize,
}

/// A finding and how well it answers, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recalled {
    pub(crate) finding: Arc<FindingRow>,
    pub(crate) score: f64,
}

impl Default for Recall {
    fn default() -> Self {
        Self { shelves: Mutex::default(), changes: AtomicU64::new(0), bytes_max: BYTES_MAX }
    }
}

impl Recall {
    /// The findings that answer a question best, best first and equal ones by id.
    pub(crate) async fn search(
        &self,
        store: &dyn Store,
        (org, codebase): (&str, &str),
        query: &str,
        (count_max, score_min): (usize, f64),
    ) -> ApiResult<Vec<Recalled>> {
        Ok(self.shelf(store, org, codebase).await?.search(query, count_max, score_min))
    }

    /// The findings of a codebase were changed here.
    pub(crate) fn changed(&self, org: &str, codebase: &str) {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::SeqCst);
        if let Some(kept) = shelves.get_mut(&(org.to_owned(), codebase.to_owned())) {
            kept.read_at = None;
        }
    }

    async fn shelf(&self, store: &dyn Store, org: &str, codebase: &str) -> ApiResult<Arc<Shelf>> {
        let name = (org.to_owned(), codebase.to_owned());
        let known = {
            let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
            shelves.get_mut(&name).map(|kept| {
                kept.used_at = Instant::now();
                kept.clone()
            })
        };
        let is_fresh = |at: Instant| at.elapsed() < BELIEVED_FOR;
        if let Some(kept) = &known
            && kept.read_at.is_some_and(is_fresh)
        {
            return Ok(Arc::clone(&kept.shelf));
        }
        let (changes, read_at) = (self.changes.load(Ordering::SeqCst), Instant::now());
        let rows = store.findings(org, codebase).await?;
        // Many new findings take a while to embed; other requests go on meanwhile.
        let built = tokio::task::spawn_blocking(move || {
            Shelf::new(rows, known.as_ref().map(|kept| &*kept.shelf))
        });
        let built = Arc::new(built.await.map_err(|error| {
            tracing::error!(%error, "findings could not be embedded");
            ApiError::Internal
        })?);
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = self.changes.load(Ordering::SeqCst) == changes;
        let kept = Kept {
            shelf: Arc::clone(&built),
            read_at: unchanged.then_some(read_at),
            used_at: read_at,
        };
        shelves.insert(name, kept);
        make_room(&mut shelves, self.bytes_max);
        Ok(built)
    }
}

/// Drops what was not used the longest until the rest fits.
fn make_room(shelves: &mut BTreeMap<Name, Kept>, bytes_max: usize) {
    let mut bytes: usize = shelves.values().map(|kept| kept.shelf.bytes).sum();
    while bytes > bytes_max {
        let oldest = shelves.iter().min_by_key(|(_, kept)| kept.used_at);
        let Some((name, kept)) = oldest.map(|(name, kept)| (name.clone(), kept.clone())) else {
            return;
        };
        bytes -= kept.shelf.bytes;
        shelves.remove(&name);
    }
}

impl Shelf {
    /// Of these rows; what `before` has embedded already is taken from there.
    fn new(rows: Vec<FindingRow>, before: Option<&Self>) -> Self {
        let mut vectors = before.map_or_else(|| Index::new(DIMS), |before| before.vectors.clone());
        let mut findings = BTreeMap::new();
        let mut bytes = 0;
        for row in rows {
            bytes += bytes_of(&row);
            let known = before.and_then(|before| before.findings.get(&row.finding_id));
            let is_embedded = known.is_some_and(|known| known.content == row.content);
            if !is_embedded {
                // All vectors come from the one embedder, so the dimensions agree.
                let vector = embed(&row.content);
                let _ = vectors.insert(Owner::Shared, row.finding_id.clone(), &vector);
            }
            findings.insert(row.finding_id.clone(), Arc::new(row));
        }
        for gone in before.iter().flat_map(|before| before.findings.keys()) {
            if !findings.contains_key(gone) {
                vectors.remove(&Owner::Shared, gone);
            }
        }
        Self { findings, vectors, bytes }
    }

    fn search(&self, query: &str, count_max: usize, score_min: f64) -> Vec<Recalled> {
        let wanted = SearchParams { max_hits: count_max, min_cosine: cosine_min(score_min) };
        let hits = self.vectors.nearest_all_owners(&embed(query), wanted).unwrap_or_default();
        let recalled = hits.iter().filter_map(|hit| {
            let finding = Arc::clone(self.findings.get(hit.id)?);
            Some(Recalled { finding, score: score(hit.cosine) })
        });
        recalled.collect()
    }
}

fn score(cosine: f32) -> f64 {
    f64::from(Calibration::STATIC_MODEL.similarity(cosine))
}

/// The cosine behind a threshold. At 0 everything counts, also what points the other way.
#[expect(clippy::cast_possible_truncation, reason = "a threshold needs no more digits")]
fn cosine_min(score_min: f64) -> f32 {
    if score_min <= 0.0 { -1.0 } else { Calibration::STATIC_MODEL.cosine_at(score_min as f32) }
}

fn bytes_of(row: &FindingRow) -> usize {
    let metadata: usize =
        row.metadata.iter().map(|(name, value)| name.len() + json_bytes(value)).sum();
    let texts = row.org.len() + row.codebase.len() + 3 * row.finding_id.len();
    FINDING_BYTES + texts + row.content.len() + row.file_path.len() + metadata
}

/// About what a value takes in memory.
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
