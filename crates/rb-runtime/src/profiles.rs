//! Monitor weights of a run: the request's weights override the profile's, which override the defaults.

use std::sync::Arc;
use std::time::Duration;

use rb_engine::config::weights::{Profile, WeightNote, Weights};
use rb_store::{ProfileRow, Result, Scope, Store};

use crate::cache::TtlCache;

/// Delay after which changes made by other nodes are visible.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Organisations.
const CACHE_CAPACITY: usize = 1_000;

/// Custom profiles, cached by organisation.
pub struct Profiles {
    by_org: TtlCache<String, Arc<[ProfileRow]>>,
}

impl Default for Profiles {
    fn default() -> Self {
        Self { by_org: TtlCache::new(CACHE_CAPACITY, CACHE_TTL) }
    }
}

impl Profiles {
    /// Returns the weights of a profile with `overrides` on top. A project's profile takes precedence over the
    /// organisation's; an unknown name has the default weights.
    pub async fn weights(
        &self,
        store: &dyn Store,
        (org, project): (&str, &str),
        name: Option<&str>,
        overrides: impl IntoIterator<Item = (&str, f64)> + Send,
    ) -> Result<(Weights, Vec<WeightNote>)> {
        let name = name.unwrap_or_default();
        let base = match Profile::from_name(name) {
            Some(profile) => Weights::of(profile),
            None if name.is_empty() => Weights::default(),
            None => self.custom(store, org, project, name).await?,
        };
        Ok(base.with(overrides))
    }

    /// Drops the cached profiles after a change on this node.
    pub fn invalidate(&self) {
        self.by_org.clear();
    }

    async fn custom(
        &self,
        store: &dyn Store,
        org: &str,
        project: &str,
        name: &str,
    ) -> Result<Weights> {
        let rows = self.of_org(store, org).await?;
        let find = |project: &str| {
            rows.iter().find(|row| row.profile_id == name && row.project == project)
        };
        let Some(row) = find(project).or_else(|| find("")) else {
            return Ok(Weights::default());
        };
        let weights = row.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
        Ok(Weights::default().with(weights).0)
    }

    async fn of_org(&self, store: &dyn Store, org: &str) -> Result<Arc<[ProfileRow]>> {
        if let Some(rows) = self.by_org.get(org) {
            return Ok(rows);
        }
        let rows: Arc<[ProfileRow]> = store.profiles(&Scope::org(org)).await?.into();
        self.by_org.insert(org.to_owned(), Arc::clone(&rows));
        Ok(rows)
    }
}
