//! The patterns in memory, found by meaning.
//!
//! A snapshot of all patterns is searched; a change made here replaces it at once, one made by another process is
//! seen within a second. E1 is found within its organisation only, E2 and E3 by everybody. A situation passes when it is
//! as similar as the tier's gate and the pattern's own threshold ask for.

/// The fields of patterns under all their names.
pub(crate) mod fields;
/// What turns situations into directions.
pub(crate) mod meaning;
/// The library a new installation begins with.
pub(crate) mod starter;

/// The patterns at one time, and their directions.
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rb_engine::guidance::render::Family;
use rb_engine::guidance::{Pattern, Tier};
use rb_store::{Change, PatternRow, Result, Scope, Store};

use crate::clock::now_ms;
use meaning::Better;
use snapshot::{Asked, Snapshot};

/// A change made by another process is seen after this long.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// Uses are written this long after they happened, many at once.
const USES_WRITTEN_AFTER: Duration = Duration::from_secs(1);
/// More uses than this between two writes are not counted.
const USES_HELD_MAX: usize = 10_000;
/// Its value changes with the library.
const VERSION: &str = "library_version";

/// The change that tells other processes about changes of patterns. Goes with each of them.
pub(crate) fn changed() -> Change {
    let value = uuid::Uuid::now_v7().simple().to_string();
    Change::PutSetting { name: VERSION.to_owned(), value }
}

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
    pub(crate) row: Arc<PatternRow>,
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
    held: Mutex<Held>,
    uses: Mutex<Vec<(String, String, String)>>,
}

#[derive(Default)]
struct Held {
    snapshot: Option<Arc<Snapshot>>,
    /// When it was last compared with the store.
    looked: Option<Instant>,
}

impl Library {
    pub(crate) fn new(store: Arc<dyn Store>, gates: Gates, better: Option<Better>) -> Arc<Self> {
        let (held, uses) = (Mutex::default(), Mutex::default());
        Arc::new(Self { store, gates, better, held, uses })
    }

    /// The patterns were changed here: the next look-up sees it.
    pub(crate) fn forget(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.looked = None;
    }

    /// The patterns that fit, best first.
    pub(crate) async fn find(self: &Arc<Self>, wanted: &Wanted<'_>) -> Result<Vec<Match>> {
        let snapshot = self.snapshot().await?;
        let tiers: &[Tier] = match wanted.tier {
            Some(Tier::E1) => &[Tier::E1],
            Some(Tier::E2) => &[Tier::E2],
            Some(Tier::E3) => &[Tier::E3],
            None if wanted.context.trim().is_empty() => &[Tier::E3],
            None => &[Tier::E1, Tier::E2],
        };
        let asked = self.asked(&snapshot, wanted.context, tiers).await;
        let mut found = Vec::new();
        for tier in tiers {
            found.extend(match tier {
                Tier::E1 => snapshot.nearest(Tier::E1, &asked, wanted, self.gates.e1),
                Tier::E2 => snapshot.nearest(Tier::E2, &asked, wanted, self.gates.e2),
                Tier::E3 => snapshot.rules(wanted),
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

    /// The directions of a situation, by the better embedder where the snapshot has its vectors.
    async fn asked(&self, snapshot: &Snapshot, context: &str, tiers: &[Tier]) -> Asked {
        if tiers == [Tier::E3] || context.trim().is_empty() {
            return Asked::nothing();
        }
        let texts = snapshot::situations(context);
        if let Some(better) = self.better.as_ref().filter(|_| snapshot.has_better()) {
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

    async fn snapshot(self: &Arc<Self>) -> Result<Arc<Snapshot>> {
        let (held, is_fresh) = {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let is_fresh = held.looked.is_some_and(|at| at.elapsed() < LOOKED_EVERY);
            (held.snapshot.clone(), is_fresh)
        };
        match held {
            Some(snapshot) if is_fresh => Ok(snapshot),
            Some(snapshot) => match self.looked_again(&snapshot).await {
                Ok(snapshot) => Ok(snapshot),
                Err(error) => {
                    tracing::warn!(%error, "the library may be out of date");
                    Ok(snapshot)
                }
            },
            None => self.load().await,
        }
    }

    async fn looked_again(self: &Arc<Self>, snapshot: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let version = self.store.setting(VERSION).await?;
        if version != snapshot.version {
            return self.load().await;
        }
        self.hold(Arc::clone(snapshot));
        Ok(Arc::clone(snapshot))
    }

    async fn load(self: &Arc<Self>) -> Result<Arc<Snapshot>> {
        // The version first: a change between the two reads is seen at the next look.
        let version = self.store.setting(VERSION).await?;
        let rows = self.store.patterns(&Scope::default()).await?;
        let calibration = self.better.as_ref().map(|_| Better::CALIBRATION);
        let work = move || Snapshot::new(version, rows, calibration);
        let snapshot = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "the library could not be read into memory");
            Snapshot::default()
        });
        let snapshot = Arc::new(snapshot);
        self.hold(Arc::clone(&snapshot));
        if self.better.is_some() {
            tokio::spawn(Arc::clone(self).improve(Arc::clone(&snapshot)));
        }
        Ok(snapshot)
    }

    fn hold(&self, snapshot: Arc<Snapshot>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Held { snapshot: Some(snapshot), looked: Some(Instant::now()) };
    }

    /// Adds the better embedder's vectors to a snapshot, in the background; until then the packed ones serve.
    async fn improve(self: Arc<Self>, snapshot: Arc<Snapshot>) {
        let Some(better) = &self.better else { return };
        let texts = snapshot.texts();
        match better.embed(&texts).await {
            Ok(vectors) => snapshot.add_better(&vectors),
            Err(error) => {
                tracing::warn!(%error, "patterns are compared by the packed vectors for now");
                tokio::time::sleep(LOOKED_EVERY * 15).await;
                // Reading the library anew asks again.
                let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                if held.snapshot.as_ref().is_some_and(|held| Arc::ptr_eq(held, &snapshot)) {
                    *held = Held::default();
                }
            }
        }
    }
}

/// Whether a pattern is for a model; an unknown model gets everything.
fn is_for(row: &PatternRow, model: &str) -> bool {
    let Some(family) = row.model_family.as_deref().filter(|family| !family.is_empty()) else {
        return true;
    };
    model.is_empty()
        || model.to_ascii_lowercase().contains(&family.to_ascii_lowercase())
        || (Family::of_model(family) != Family::default()
            && Family::of_model(family) == Family::of_model(model))
}
