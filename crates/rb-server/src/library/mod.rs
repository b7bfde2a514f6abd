//! The patterns in memory, found by meaning.
//!
//! All patterns are in memory. What changes in the store is laid on as it comes: a change made here at once, one made by
//! another process within a second, whatever the size of the library. E1 is found within its organisation only, E2 and E3 by everybody. A situation passes when it is
//! as similar as the tier's gate and the pattern's own threshold ask for.

/// The fields of patterns under all their names.
pub(crate) mod fields;
/// What turns situations into directions.
pub(crate) mod meaning;
/// The library a new installation begins with.
pub(crate) mod starter;

/// The patterns in memory, and their directions.
mod shelf;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use rb_engine::guidance::render::Family;
use rb_engine::guidance::{Pattern, Tier};
use rb_store::{Change, PatternRow, Result, Store};

use crate::clock::now_ms;
use meaning::Better;
use shelf::{Asked, Prepared, Shelf};

/// A change made by another process is seen after this long.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// Uses are written this long after they happened, many at once.
const USES_WRITTEN_AFTER: Duration = Duration::from_secs(1);
/// More uses than this between two writes are not counted.
const USES_HELD_MAX: usize = 10_000;
/// Look-ups wait for changes to be read until the reading has taken so long. A large library comes in for a while after
/// the start: those that ask in its first moment wait, and then what has come is searched at once.
const WAITED_MAX: Duration = Duration::from_secs(1);
/// Changes that are read at once, and laid on while nobody searches.
const CHANGES_AT_ONCE: u32 = 500;
/// Patterns that are sent to the better embedder at once.
const IMPROVED_AT_ONCE: usize = 64;
/// A better embedder that failed is asked again after this long.
const IMPROVED_AGAIN: Duration = Duration::from_secs(15);

/// What is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    pub(crate) org: &'a str,
    /// `None` lets the library choose: what fits the situation, or the rules where none is described.
    pub(crate) tier: Option<Tier>,
    pub(crate) context: &'a str,
    pub(crate) failure_type: Option<&'a str>,
    /// The model that will read it; empty for any.
    pub(crate) model: &'a str,
    pub(crate) top_k: usize,
}

/// A pattern that fits.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) row: PatternRow,
    pub(crate) tier: Tier,
    /// From 0 to 1; a standing rule fits everywhere.
    pub(crate) similarity: f64,
}

impl Match {
    /// As the engine takes it.
    pub(crate) fn pattern(&self) -> Pattern {
        let body = fields::body(self.tier, &self.row.fields);
        Pattern { id: self.row.pattern_id.clone(), body }
    }
}

/// How similar a situation must be, by tier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gates {
    pub(crate) e1: f64,
    pub(crate) e2: f64,
}

/// The library.
pub(crate) struct Library {
    store: Arc<dyn Store>,
    gates: Gates,
    better: Option<Better>,
    shelf: RwLock<Shelf>,
    looked: Mutex<Looked>,
    /// Held by whoever reads changes.
    reading: Arc<tokio::sync::Mutex<()>>,
    /// Held by whoever asks the better embedder about patterns.
    improving: tokio::sync::Mutex<()>,
    uses: Mutex<Vec<(String, String, String)>>,
}

/// How well the shelf is known to be as the store.
#[derive(Default)]
struct Looked {
    /// When it last was.
    at: Option<Instant>,
    /// How often somebody has changed a pattern here.
    changed: u64,
    /// It has been, once.
    is_loaded: bool,
    /// When the reading began that is under way.
    reading_since: Option<Instant>,
}

impl Looked {
    /// How long a look-up waits for the reading that is under way, or for its own.
    fn patience(&self) -> Duration {
        let taken = self.reading_since.map_or(Duration::ZERO, |since| since.elapsed());
        WAITED_MAX.saturating_sub(taken)
    }
}

impl Library {
    pub(crate) fn new(store: Arc<dyn Store>, gates: Gates, better: Option<Better>) -> Arc<Self> {
        let shelf = Shelf::new(better.as_ref().map(|_| Better::CALIBRATION));
        Arc::new(Self {
            store,
            gates,
            better,
            shelf: RwLock::new(shelf),
            looked: Mutex::default(),
            reading: Arc::default(),
            improving: tokio::sync::Mutex::default(),
            uses: Mutex::default(),
        })
    }

    /// Begins to read the library, so that it is there when it is asked for.
    pub(crate) fn read_ahead(self: &Arc<Self>) {
        let library = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = library.catch_up().await {
                tracing::warn!(%error, "the library is not there yet");
            }
        });
    }

    /// The patterns were changed here: the next look-up sees it.
    pub(crate) fn forget(&self) {
        let mut looked = self.looked();
        looked.at = None;
        looked.changed += 1;
    }

    /// The patterns that fit, best first.
    pub(crate) async fn find(self: &Arc<Self>, wanted: &Wanted<'_>) -> Result<Vec<Match>> {
        self.catch_up().await?;
        let tiers: &[Tier] = match wanted.tier {
            Some(Tier::E1) => &[Tier::E1],
            Some(Tier::E2) => &[Tier::E2],
            Some(Tier::E3) => &[Tier::E3],
            None if wanted.context.trim().is_empty() => &[Tier::E3],
            None => &[Tier::E1, Tier::E2],
        };
        let asked = self.asked(wanted.context, tiers).await;
        let held = self.shelf();
        let mut found = Vec::new();
        for tier in tiers {
            found.extend(match tier {
                Tier::E1 => held.nearest(Tier::E1, &asked, wanted, self.gates.e1),
                Tier::E2 => held.nearest(Tier::E2, &asked, wanted, self.gates.e2),
                Tier::E3 => held.rules(wanted),
            });
        }
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        found.truncate(wanted.top_k);
        Ok(found)
    }

    /// Patterns were handed out: their use is counted, soon and many at once.
    pub(crate) fn used(self: &Arc<Self>, found: &[Match]) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_empty() || uses.len() + found.len() > USES_HELD_MAX {
            return;
        }
        let is_first = uses.is_empty();
        uses.extend(found.iter().map(|found| {
            let row = &found.row;
            (row.org.clone(), row.tier.clone(), row.pattern_id.clone())
        }));
        if is_first {
            let library = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(USES_WRITTEN_AFTER).await;
                library.write_uses().await;
            });
        }
    }

    /// Writes the uses that are held; also when the server ends.
    pub(crate) async fn write_uses(&self) {
        let used = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        if used.is_empty() {
            return;
        }
        let change = Change::UsePatterns { used, at_ms: now_ms() };
        if let Err(error) = self.store.apply(vec![change]).await {
            tracing::warn!(%error, "uses of patterns were not counted");
        }
    }

    /// The directions of a situation, by the better embedder where all patterns have theirs.
    async fn asked(&self, context: &str, tiers: &[Tier]) -> Asked {
        if tiers == [Tier::E3] || context.trim().is_empty() {
            return Asked::nothing();
        }
        let texts = shelf::situations(context);
        if let Some(better) = self.better.as_ref().filter(|_| self.shelf().has_better()) {
            match better.embed(&texts).await {
                Ok(vectors) => return Asked::better(vectors),
                Err(meaning::MeaningError::Resting) => {}
                Err(error) => {
                    tracing::warn!(%error, "situations are compared by the packed vectors");
                }
            }
        }
        Asked::packed(&texts)
    }

    /// Lays on what has changed, unless that was done a moment ago. Goes on with what there is if it takes too long, or
    /// cannot be done any more.
    async fn catch_up(self: &Arc<Self>) -> Result<()> {
        if self.is_fresh() {
            return Ok(());
        }
        let patience = self.looked().patience();
        let waiting = tokio::time::timeout(patience, Arc::clone(&self.reading).lock_owned());
        let Ok(alone) = waiting.await else { return Ok(()) };
        if self.is_fresh() {
            return Ok(());
        }
        self.looked().reading_since = Some(Instant::now());
        let library = Arc::clone(self);
        let reading = tokio::spawn(async move {
            let done = library.read_changes().await;
            library.looked().reading_since = None;
            drop(alone);
            done
        });
        match tokio::time::timeout(WAITED_MAX, reading).await {
            Ok(Ok(Err(error))) if self.looked().is_loaded => {
                tracing::warn!(%error, "the library may be out of date");
                Ok(())
            }
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                tracing::error!(%error, "the library could not be read");
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    async fn read_changes(self: &Arc<Self>) -> Result<()> {
        loop {
            let made_here = self.looked().changed;
            let version = self.shelf().version;
            let changes = self.store.pattern_changes(version, CHANGES_AT_ONCE).await?;
            let is_all = changes.len() < CHANGES_AT_ONCE as usize;
            if let Some((version, _)) = changes.last() {
                let version = *version;
                let library = Arc::clone(self);
                let work = move || library.lay_on(version, &changes);
                if let Err(error) = tokio::task::spawn_blocking(work).await {
                    tracing::error!(%error, "changes of patterns could not be laid on");
                }
                if self.better.is_some() {
                    tokio::spawn(Arc::clone(self).improve());
                }
            }
            if is_all {
                let mut looked = self.looked();
                looked.is_loaded = true;
                // A change that was made meanwhile here may have been missed.
                looked.at = (looked.changed == made_here).then(Instant::now);
                return Ok(());
            }
        }
    }

    /// Lays changes on. What takes time is done before anybody has to wait.
    fn lay_on(&self, version: u64, changes: &[(u64, rb_store::PatternChange)]) {
        let prepared: Vec<Prepared> =
            changes.iter().filter_map(|(_, change)| Prepared::new(change)).collect();
        let mut held = self.shelf_mut();
        for change in prepared {
            held.lay_on(change);
        }
        held.version = version;
    }

    /// Asks the better embedder about patterns that it has not seen, in the background; until all have its directions,
    /// the packed ones serve.
    async fn improve(self: Arc<Self>) {
        let Some(better) = &self.better else { return };
        let _alone = self.improving.lock().await;
        loop {
            let books = self.shelf().awaiting(IMPROVED_AT_ONCE);
            if books.is_empty() {
                return;
            }
            let situations: Vec<Vec<String>> = books.iter().map(|book| book.situations()).collect();
            match better.embed(&situations.concat()).await {
                Ok(vectors) => {
                    let mut vectors = vectors.as_slice();
                    let mut held = self.shelf_mut();
                    for (book, lines) in books.iter().zip(&situations) {
                        let (own, rest) = vectors.split_at(lines.len().min(vectors.len()));
                        vectors = rest;
                        if let Err(error) = held.add_better(book, own) {
                            tracing::warn!(%error, "patterns are compared by the packed vectors");
                            return;
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "patterns are compared by the packed vectors for now");
                    tokio::time::sleep(IMPROVED_AGAIN).await;
                }
            }
        }
    }

    fn is_fresh(&self) -> bool {
        self.looked().at.is_some_and(|at| at.elapsed() < LOOKED_EVERY)
    }

    fn looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shelf(&self) -> RwLockReadGuard<'_, Shelf> {
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shelf_mut(&self) -> RwLockWriteGuard<'_, Shelf> {
        self.shelf.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a pattern is for a model; an unknown model gets everything.
fn is_for(family: Option<&str>, model: &str) -> bool {
    let Some(family) = family.filter(|family| !family.is_empty()) else {
        return true;
    };
    model.is_empty()
        || model.to_ascii_lowercase().contains(&family.to_ascii_lowercase())
        || (Family::of_model(family) != Family::default()
            && Family::of_model(family) == Family::of_model(model))
}
