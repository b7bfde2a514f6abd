//! Edits of profiles. A name exists once per organisation and once per project; built-in profiles cannot be edited.

use std::collections::BTreeMap;
use std::sync::Arc;

use rb_engine::config::weights::{Profile, WeightNote, Weights};
use rb_store::{Change, ProfileRow, Scope, Store};
use serde_json::{Map, Value};

use super::LibraryError;
use crate::auth::{Caller, DEFAULT_ORG};
use crate::clock::now_ms;
use crate::profiles::Profiles;

/// Same as the maximum length of a run's `task_profile`.
const MAX_ID_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 4_000;
const MAX_SCOPE_CHARS: usize = 256;
const NOT_FOUND: LibraryError = LibraryError::NotFound("there is no such profile");

/// Editor of profiles.
pub struct ProfileLibrary {
    store: Arc<dyn Store>,
    cache: Arc<Profiles>,
}

/// Profile of a caller.
#[derive(Debug, Clone, Copy)]
pub struct ProfileId<'a> {
    pub id: &'a str,
    /// Ignored for keys of an organisation.
    pub org: Option<&'a str>,
    /// `None` or empty for the whole organisation.
    pub project: Option<&'a str>,
}

impl ProfileId<'_> {
    /// Organisation and project: the scope of the key takes precedence; default is the whole organisation.
    fn owner(&self, caller: &Caller) -> (String, String) {
        let Scope { org, project } = caller.scope(self.org, self.project);
        (org.unwrap_or_else(|| DEFAULT_ORG.to_owned()), project.unwrap_or_default())
    }

    fn check_editable(&self) -> Result<(), LibraryError> {
        match Profile::from_name(self.id) {
            Some(_) => Err(LibraryError::Conflict(format!(
                "`{}` is built in and cannot be changed; create one under another name",
                self.id
            ))),
            None => Ok(()),
        }
    }
}

/// Content of a new profile.
#[derive(Default)]
pub struct NewProfile {
    pub description: String,
    pub weights: BTreeMap<String, f64>,
    pub extra: Map<String, Value>,
}

/// Change of a profile; what is missing stays unchanged.
#[derive(Default)]
pub struct ProfileChange {
    pub description: Option<String>,
    /// `None` resets a weight to its default.
    pub weights: BTreeMap<String, Option<f64>>,
    /// Null removes a field.
    pub extra: Map<String, Value>,
}

impl ProfileLibrary {
    pub fn new(store: Arc<dyn Store>, cache: Arc<Profiles>) -> Self {
        Self { store, cache }
    }

    /// Returns a custom profile as a run of the project resolves it: the project's own, else the organisation's.
    pub async fn resolve(
        &self,
        caller: &Caller,
        profile: ProfileId<'_>,
    ) -> Result<ProfileRow, LibraryError> {
        let (org, project) = profile.owner(caller);
        match self.find(&org, &project, profile.id).await? {
            Some(row) => Ok(row),
            None => self.find(&org, "", profile.id).await?.ok_or(NOT_FOUND),
        }
    }

    /// Creates a profile. The notes list the weights that were clamped or ignored.
    pub async fn create(
        &self,
        caller: &Caller,
        profile: ProfileId<'_>,
        new: NewProfile,
    ) -> Result<(ProfileRow, Vec<WeightNote>), LibraryError> {
        if profile.id.trim().is_empty() {
            return Err(LibraryError::invalid("profile_id", "a profile needs a name"));
        }
        check_length("profile_id", Some(profile.id), MAX_ID_CHARS)?;
        check_length("org_id", profile.org, MAX_SCOPE_CHARS)?;
        check_length("project_id", profile.project, MAX_SCOPE_CHARS)?;
        check_length("description", Some(&new.description), MAX_DESCRIPTION_CHARS)?;
        profile.check_editable()?;
        let (org, project) = profile.owner(caller);
        if self.find(&org, &project, profile.id).await?.is_some() {
            return Err(LibraryError::Conflict(format!(
                "there is a profile `{}` already; change it with PATCH",
                profile.id
            )));
        }
        let (weights, notes) = checked(new.weights);
        let now = now_ms();
        let row = ProfileRow {
            org,
            project,
            profile_id: profile.id.to_owned(),
            description: new.description,
            weights,
            extra: new.extra,
            created_ms: now,
            updated_ms: now,
        };
        self.put(&row).await?;
        Ok((row, notes))
    }

    /// Changes a profile of exactly this organisation and project.
    pub async fn change(
        &self,
        caller: &Caller,
        profile: ProfileId<'_>,
        change: ProfileChange,
    ) -> Result<(ProfileRow, Vec<WeightNote>), LibraryError> {
        profile.check_editable()?;
        check_length("description", change.description.as_deref(), MAX_DESCRIPTION_CHARS)?;
        let (org, project) = profile.owner(caller);
        let mut row = self.find(&org, &project, profile.id).await?.ok_or(NOT_FOUND)?;
        let (mut set, mut reset) = (BTreeMap::new(), Vec::new());
        for (name, weight) in change.weights {
            match weight {
                Some(weight) => _ = set.insert(name, weight),
                None => reset.push(name),
            }
        }
        let (weights, notes) = checked(set);
        row.weights.extend(weights);
        row.weights.retain(|name, _| !reset.contains(name));
        row.description = change.description.unwrap_or(row.description);
        row.extra.extend(change.extra);
        row.extra.retain(|_, value| !value.is_null());
        row.updated_ms = now_ms();
        self.put(&row).await?;
        Ok((row, notes))
    }

    /// Deletes a profile of exactly this organisation and project.
    pub async fn delete(
        &self,
        caller: &Caller,
        profile: ProfileId<'_>,
    ) -> Result<(), LibraryError> {
        profile.check_editable()?;
        let (org, project) = profile.owner(caller);
        let delete = Change::DeleteProfile { org, project, profile_id: profile.id.to_owned() };
        let deleted: u64 = self.store.apply(vec![delete]).await?.into_iter().sum();
        self.cache.invalidate();
        if deleted == 0 { Err(NOT_FOUND) } else { Ok(()) }
    }

    async fn find(
        &self,
        org: &str,
        project: &str,
        profile_id: &str,
    ) -> Result<Option<ProfileRow>, LibraryError> {
        let rows = self.store.profiles(&Scope::org(org)).await?;
        Ok(rows.into_iter().find(|row| row.profile_id == profile_id && row.project == project))
    }

    async fn put(&self, row: &ProfileRow) -> Result<(), LibraryError> {
        self.store.apply(vec![Change::PutProfile(Box::new(row.clone()))]).await?;
        self.cache.invalidate();
        Ok(())
    }
}

/// Returns the known weights, clamped, and notes about the others.
fn checked(given: BTreeMap<String, f64>) -> (BTreeMap<String, f64>, Vec<WeightNote>) {
    let borrowed = given.iter().map(|(name, weight)| (name.as_str(), *weight));
    let (weights, notes) = Weights::default().with(borrowed);
    let known =
        given.into_keys().filter_map(|name| weights.get(&name).map(|weight| (name, weight)));
    (known.collect(), notes)
}

fn check_length(
    field: &'static str,
    value: Option<&str>,
    max_chars: usize,
) -> Result<(), LibraryError> {
    if value.is_some_and(|value| value.chars().count() > max_chars) {
        let message = format!("longer than {max_chars} characters; shorten it");
        return Err(LibraryError::invalid(field, message));
    }
    Ok(())
}
