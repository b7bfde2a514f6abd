//! Authentication: API keys, and the scope of the caller that holds one.
//!
//! There are three kinds of callers. A *stored* key belongs to an organisation, optionally to one of its projects, and
//! its scope overrides the scope named in a request. A *static* key from `REASONBLOCKS_KEYS` belongs to the operator
//! and may name any organisation. On a loopback listener without any key, every caller is the *local* user with the
//! operator's rights.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use rb_store::{KeyRow, Scope, Store, StoreError};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::cache::TtlCache;
use crate::clock;

/// Organisation of requests that name none.
pub const DEFAULT_ORG: &str = "default";
/// Project of requests that name none.
pub const DEFAULT_PROJECT: &str = "default";

/// Delay after which a key revoked by another process is rejected.
const CACHE_TTL: Duration = Duration::from_millis(500);
/// Keys.
const CACHE_CAPACITY: usize = 10_000;
/// Timeout of a lookup with a cached answer, which is used instead.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(20);
/// Timeout of a lookup without a cached answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Random bytes of a key.
const SECRET_BYTES: usize = 32;
/// Random characters displayed to recognise a key.
const SHOWN_CHARS: usize = 6;

/// Reason why a caller could not be authenticated.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("a key is needed: send `Authorization: Bearer <key>`; `rb keys create` makes one")]
    MissingKey,
    #[error("this key is not known")]
    UnknownKey,
    #[error("this key was revoked")]
    RevokedKey,
    #[error("the store did not answer in time")]
    TimedOut,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Short name for limits and logs; never the secret.
    pub name: Arc<str>,
    /// Display name of the key.
    pub key_name: Arc<str>,
    /// Organisation of the key; `None` for the operator.
    org: Option<Arc<str>>,
    /// Project of the key.
    project: Option<Arc<str>>,
}

impl Caller {
    fn operator(name: &str) -> Self {
        Self { name: name.into(), key_name: name.into(), org: None, project: None }
    }

    /// Operator signed in by the link that the server printed.
    pub fn by_link() -> Self {
        Self::operator("link")
    }

    /// User of this machine, while no key is needed.
    pub fn local() -> Self {
        Self::operator("local")
    }

    fn of_key(key: &KeyRow) -> Self {
        let project = (!key.project.is_empty()).then(|| key.project.as_str().into());
        let key_name = if key.name.is_empty() { &key.key_id } else { &key.name };
        Self {
            name: key.key_id.as_str().into(),
            key_name: key_name.as_str().into(),
            org: Some(key.org.as_str().into()),
            project,
        }
    }

    /// Returns `true` for a caller that may name any organisation.
    pub fn is_operator(&self) -> bool {
        self.org.is_none()
    }

    /// Restricts the requested scope to the scope of the key.
    pub fn scope(&self, org: Option<&str>, project: Option<&str>) -> Scope {
        let chosen = |own: &Option<Arc<str>>, asked: Option<&str>| match own {
            Some(own) => Some(own.to_string()),
            None => asked.filter(|asked| !asked.is_empty()).map(str::to_owned),
        };
        Scope { org: chosen(&self.org, org), project: chosen(&self.project, project) }
    }

    /// Returns `true` if the key may access the runs of a project in its organisation.
    pub fn may_access(&self, project: &str) -> bool {
        self.project.as_ref().is_none_or(|own| **own == *project)
    }

    /// Organisation and project of new rows.
    pub fn org_and_project(&self, org: Option<&str>, project: Option<&str>) -> (String, String) {
        let Scope { org, project } = self.scope(org, project);
        (
            org.unwrap_or_else(|| DEFAULT_ORG.to_owned()),
            project.unwrap_or_else(|| DEFAULT_PROJECT.to_owned()),
        )
    }
}

/// Returns the hash under which a key is stored. Keys are long and random, so a plain hash cannot be reversed.
pub fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

#[derive(Clone)]
struct StoredKey {
    caller: Caller,
    is_revoked: bool,
}

/// Authenticates secrets against static and stored keys.
pub struct Keys {
    /// Hashes of the operator's keys with their callers.
    operators: Vec<(String, Caller)>,
    is_loopback: bool,
    /// Stored keys by hash.
    stored: TtlCache<String, Option<StoredKey>>,
    /// Time and result of the last check for any stored key.
    any_stored: Mutex<Option<(Instant, bool)>>,
}

impl Keys {
    pub fn new(static_keys: &[String], is_loopback: bool) -> Self {
        let operator = |position| Caller::operator(&format!("static-{position}"));
        let static_keys = static_keys.iter().enumerate();
        let operators = static_keys.map(|(at, secret)| (hash(secret), operator(at))).collect();
        let stored = TtlCache::new(CACHE_CAPACITY, CACHE_TTL);
        Self { operators, is_loopback, stored, any_stored: Mutex::default() }
    }

    /// Drops the cached keys after a change on this node.
    pub fn invalidate(&self) {
        self.stored.clear();
        *self.any_stored.lock() = None;
    }

    /// Returns `true` while requests need no key.
    pub async fn is_open(&self, store: &dyn Store) -> Result<bool, AuthError> {
        if !self.is_loopback || !self.operators.is_empty() {
            return Ok(false);
        }
        let cached = *self.any_stored.lock();
        if let Some((at, any)) = cached
            && at.elapsed() < CACHE_TTL
        {
            return Ok(!any);
        }
        // A revoked key counts too: it shows that this server is not meant to be open.
        let lookup = async { Ok(!store.keys().await?.is_empty()) };
        let any = or_cached(lookup, cached.map(|(_, any)| any)).await?;
        *self.any_stored.lock() = Some((Instant::now(), any));
        Ok(!any)
    }

    /// Authenticates a secret.
    pub async fn caller(
        &self,
        secret: Option<&str>,
        store: &dyn Store,
    ) -> Result<Caller, AuthError> {
        if self.is_open(store).await? {
            return Ok(Caller::local());
        }
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else {
            return Err(AuthError::MissingKey);
        };
        let hash = hash(secret);
        for (known, operator) in &self.operators {
            if bool::from(known.as_bytes().ct_eq(hash.as_bytes())) {
                return Ok(operator.clone());
            }
        }
        match self.stored(&hash, store).await? {
            Some(StoredKey { is_revoked: true, .. }) => Err(AuthError::RevokedKey),
            Some(StoredKey { caller, is_revoked: false }) => Ok(caller),
            None => Err(AuthError::UnknownKey),
        }
    }

    async fn stored(&self, hash: &str, store: &dyn Store) -> Result<Option<StoredKey>, AuthError> {
        if let Some(key) = self.stored.get(hash) {
            return Ok(key);
        }
        let lookup = async {
            let row = store.key(hash).await?;
            let row = row.filter(|row| bool::from(row.hash.as_bytes().ct_eq(hash.as_bytes())));
            Ok(row.map(|row| StoredKey {
                caller: Caller::of_key(&row),
                is_revoked: row.revoked_ms.is_some(),
            }))
        };
        let key = or_cached(lookup, self.stored.get_stale(hash)).await?;
        self.stored.insert(hash.to_owned(), key.clone());
        Ok(key)
    }
}

/// Returns the store's answer, or the cached one if the store is unavailable, slow or panics: calls of agents must go on.
async fn or_cached<T>(
    lookup: impl Future<Output = rb_store::Result<T>>,
    cached: Option<T>,
) -> Result<T, AuthError> {
    let timeout = if cached.is_some() { REFRESH_TIMEOUT } else { LOOKUP_TIMEOUT };
    let lookup = AssertUnwindSafe(lookup).catch_unwind();
    match (tokio::time::timeout(timeout, lookup).await, cached) {
        (Ok(Ok(Ok(answer))), _) => Ok(answer),
        (_, Some(cached)) => Ok(cached),
        (Ok(Ok(Err(error))), None) => Err(error.into()),
        (Ok(Err(_)), None) => Err(StoreError::Unavailable("key lookup panicked".to_owned()).into()),
        (Err(_), None) => Err(AuthError::TimedOut),
    }
}

/// Purpose of a key, visible in its prefix. Both kinds have the same rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Production.
    #[default]
    Live,
    /// Development.
    Test,
}

impl KeyKind {
    /// Prefix of every key of this kind.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Live => "rb_live_",
            Self::Test => "rb_test_",
        }
    }
}

/// The operating system returned no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers to make a key of: {0}")]
pub struct NoRandomness(String);

/// Creates a key for an organisation, limited to a project unless `project` is empty. Returns the secret, which is
/// displayed once, and the row to store.
pub fn create_key(
    kind: KeyKind,
    org: &str,
    project: &str,
    name: &str,
) -> Result<(String, KeyRow), NoRandomness> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| NoRandomness(error.to_string()))?;
    let secret = kind.prefix().to_owned() + &hex::encode(bytes);
    let shown = secret.chars().take(kind.prefix().len() + SHOWN_CHARS).collect::<String>() + "…";
    let row = KeyRow {
        key_id: format!("key_{}", uuid::Uuid::now_v7().simple()),
        name: name.to_owned(),
        shown,
        hash: hash(&secret),
        org: org.to_owned(),
        project: project.to_owned(),
        created_ms: clock::now_ms(),
        revoked_ms: None,
    };
    Ok((secret, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lookup_that_panics_is_answered_from_the_cache() {
        let panics = || async { panic!("injected") };
        assert!(matches!(or_cached(panics(), Some(true)).await, Ok(true)));
        let unknown = or_cached::<bool>(panics(), None).await;
        assert!(matches!(unknown, Err(AuthError::Store(StoreError::Unavailable(_)))));
    }

    #[test]
    fn a_key_is_long_random_and_stored_as_a_hash() {
        for (kind, prefix) in [(KeyKind::Live, "rb_live_"), (KeyKind::Test, "rb_test_")] {
            let (secret, row) = create_key(kind, "acme", "", "ci").unwrap();
            let (other, _) = create_key(kind, "acme", "", "ci").unwrap();
            assert!(secret.starts_with(prefix) && secret.len() == prefix.len() + 64, "{secret}");
            assert_ne!(secret, other);
            assert_eq!(row.hash, hash(&secret));
            assert!(secret.starts_with(row.shown.trim_end_matches('…')));
            assert!(!format!("{row:?}").contains(&secret));
            // The public SDK accepts keys of these characters only.
            assert!(secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        }
    }
}
