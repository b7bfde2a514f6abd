//! Which weights a run is judged with: the request's, over the profile's, over the defaults.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rb_engine::config::weights::{Profile, WeightNote, Weights};
use rb_store::{ProfileRow, Result, Scope, Store};

/// For how long the profiles of an organisation are believed; a change made here is seen at once.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Organisations remembered at once.
const REMEMBERED_MAX: usize = 1_000;

/// When the rows of an organisation were read, and what they were.
type Read = (Instant, Arc<[ProfileRow]>);

/// Custom profiles, remembered by organisation.
#[derive(Default)]
pub(crate) struct Profiles {
    remembered: Mutex<HashMap<String, Read>>,
}

impl Profiles {
    /// The weights of a profile as an organisation and project see it, with the request's own on top. A project's
    /// profile wins over the organisation's; a name that is not known has the default weights.
    pub(crate) async fn weights(
        &self,
        store: &dyn Store,
        (org, project): (&str, &str),
        name: Option<&str>,
        own: impl IntoIterator<Item = (&str, f64)> + Send,
    ) -> Result<(Weights, Vec<WeightNote>)> {
        let named = name.unwrap_or_default();
        let base = match Profile::from_name(named) {
            Some(profile) => Weights::of(profile),
            None if named.is_empty() => Weights::default(),
            None => self.custom(store, org, project, named).await?,
        };
        Ok(base.with(own))
    }

    /// A profile was changed here.
    pub(crate) fn forget(&self) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
        let own = row.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
        Ok(Weights::default().with(own).0)
    }

    async fn of_org(&self, store: &dyn Store, org: &str) -> Result<Arc<[ProfileRow]>> {
        let known = {
            let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.get(org).filter(|(at, _)| at.elapsed() < BELIEVED_FOR).cloned()
        };
        if let Some((_, rows)) = known {
            return Ok(rows);
        }
        let rows: Arc<[ProfileRow]> = store.profiles(&Scope::org(org)).await?.into();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(org.to_owned(), (Instant::now(), Arc::clone(&rows)));
        Ok(rows)
    }
}
