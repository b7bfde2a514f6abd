//! Who is calling: keys, and what they may see.
//!
//! Three kinds of callers. A *key* made by `rb keys create` belongs to an organisation, perhaps to one project of it,
//! and its scope always wins over what the request says. A *static* key from `REASONBLOCKS_KEYS` belongs to the
//! operator and may name any organisation. On loopback, while there is no key at all, everybody on the machine is
//! the *local* user and has the operator's rights.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use rb_store::{KeyRow, Scope, Store};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::app::Shared;
use crate::error::{ApiError, ApiResult};

/// The organisation of whoever names none.
pub const ORG_DEFAULT: &str = "default";
/// The project of whoever names none.
pub const PROJECT_DEFAULT: &str = "default";

/// For how long an answer of the store about a key is believed: a key revoked by another process is refused after it.
const BELIEVED_FOR: Duration = Duration::from_millis(500);
/// A store that takes longer over a key it was asked for before is not waited for: what was known stands.
const CONFIRMED_WITHIN: Duration = Duration::from_millis(20);
/// A store that takes longer over a key nobody knows is away.
const FOUND_WITHIN: Duration = Duration::from_secs(2);
/// Keys remembered at once; beyond that the store is asked again.
const REMEMBERED_MAX: usize = 10_000;

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// A short name for limits and logs; never the secret.
    pub(crate) name: Arc<str>,
    /// What the key is called, for people.
    pub(crate) key_name: Arc<str>,
    /// The organisation the key belongs to; `None` for the operator.
    org: Option<Arc<str>>,
    /// The project it is limited to.
    project: Option<Arc<str>>,
}

impl Caller {
    fn operator(name: &str) -> Self {
        Self { name: name.into(), key_name: name.into(), org: None, project: None }
    }

    /// Whoever came by the link that the server printed.
    pub(crate) fn by_link() -> Self {
        Self::operator("link")
    }

    /// Whoever sits at this machine.
    pub(crate) fn local() -> Self {
        Self::operator("local")
    }

    fn of_key(key: &KeyRow) -> Self {
        let project = (!key.project.is_empty()).then(|| key.project.as_str().into());
        let named = if key.name.is_empty() { &key.key_id } else { &key.name };
        Self {
            name: key.key_id.as_str().into(),
            key_name: named.as_str().into(),
            org: Some(key.org.as_str().into()),
            project,
        }
    }

    /// Whether the caller may name any organisation.
    pub(crate) fn is_operator(&self) -> bool {
        self.org.is_none()
    }

    /// What the caller may see of what was asked for. The key's scope wins.
    pub(crate) fn scope(&self, org: Option<&str>, project: Option<&str>) -> Scope {
        let chosen = |mine: &Option<Arc<str>>, asked: Option<&str>| match mine {
            Some(mine) => Some(mine.to_string()),
            None => asked.filter(|asked| !asked.is_empty()).map(str::to_owned),
        };
        Scope { org: chosen(&self.org, org), project: chosen(&self.project, project) }
    }

    /// Where the caller's new rows go.
    pub(crate) fn home(&self, org: Option<&str>, project: Option<&str>) -> (String, String) {
        let Scope { org, project } = self.scope(org, project);
        (
            org.unwrap_or_else(|| ORG_DEFAULT.to_owned()),
            project.unwrap_or_else(|| PROJECT_DEFAULT.to_owned()),
        )
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> ApiResult<Self> {
        // Found out once a request, by the layer that counts requests.
        if let Some(caller) = parts.extensions.get::<Self>() {
            return Ok(caller.clone());
        }
        let caller = app.keys.caller(secret(parts).as_deref(), &*app.store).await?;
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}

/// The secret a request carries: as a bearer, or as `?token=` for browsers' event streams.
fn secret(parts: &Parts) -> Option<Cow<'_, str>> {
    let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().into())
    });
    bearer.or_else(|| {
        let query = parts.uri.query()?;
        form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == "token")
            .map(|(_, value)| value)
    })
}

/// The hash under which a key is kept. Keys are long and random, so a plain hash cannot be guessed back.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Bytes as text, two digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// What the store says of a key.
#[derive(Clone)]
struct Known {
    caller: Caller,
    is_revoked: bool,
}

/// The keys the server knows.
pub(crate) struct Keys {
    /// Hashes of the operator's keys, and who has them.
    statics: Vec<(String, Caller)>,
    /// Nobody outside this machine can reach us.
    is_loopback: bool,
    /// By the hash of the key.
    remembered: Mutex<HashMap<String, (Instant, Option<Known>)>>,
    /// Whether there was any key, when last looked.
    any: Mutex<Option<(Instant, bool)>>,
}

impl Keys {
    pub(crate) fn new(statics: &[String], is_loopback: bool) -> Self {
        let operator = |position| Caller::operator(&format!("static-{position}"));
        let statics = statics.iter().enumerate();
        let statics = statics.map(|(at, secret)| (hash(secret), operator(at))).collect();
        Self { statics, is_loopback, remembered: Mutex::default(), any: Mutex::default() }
    }

    /// Forgets what was remembered: a key was changed.
    pub(crate) fn forget(&self) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.any.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether requests need no key.
    pub(crate) async fn is_open(&self, store: &dyn Store) -> ApiResult<bool> {
        if !self.is_loopback || !self.statics.is_empty() {
            return Ok(false);
        }
        let known = *self.any.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, any)) = known
            && at.elapsed() < BELIEVED_FOR
        {
            return Ok(!any);
        }
        // A revoked key still says that this server is not meant to be open. While the store is away, what was
        // known stands.
        let asked = async { Ok(!store.keys().await?.is_empty()) };
        let any = answer(asked, known.map(|(_, any)| any)).await?;
        *self.any.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), any));
        Ok(!any)
    }

    /// Who has this secret.
    pub(crate) async fn caller(
        &self,
        secret: Option<&str>,
        store: &dyn Store,
    ) -> ApiResult<Caller> {
        if self.is_open(store).await? {
            return Ok(Caller::local());
        }
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else {
            return Err(ApiError::Unauthorized(
                "a key is needed: send `Authorization: Bearer <key>`; `rb keys create` makes one",
            ));
        };
        let hash = hash(secret);
        for (known, operator) in &self.statics {
            if bool::from(known.as_bytes().ct_eq(hash.as_bytes())) {
                return Ok(operator.clone());
            }
        }
        match self.known(&hash, store).await? {
            Some(Known { is_revoked: true, .. }) => {
                Err(ApiError::Unauthorized("this key was revoked"))
            }
            Some(Known { caller, is_revoked: false }) => Ok(caller),
            None => Err(ApiError::Unauthorized("this key is not known")),
        }
    }

    async fn known(&self, hash: &str, store: &dyn Store) -> ApiResult<Option<Known>> {
        let known =
            self.remembered.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned();
        let asked = async {
            let row = store.key(hash).await?;
            let row = row.filter(|row| bool::from(row.hash.as_bytes().ct_eq(hash.as_bytes())));
            let known =
                |row| Known { caller: Caller::of_key(&row), is_revoked: row.revoked_ms.is_some() };
            Ok(row.map(known))
        };
        let known = match known {
            Some((at, known)) if at.elapsed() < BELIEVED_FOR => return Ok(known),
            // While the store is away, what was known stands: the agent's call must go out.
            known => answer(asked, known.map(|(_, known)| known)).await?,
        };
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(hash.to_owned(), (Instant::now(), known.clone()));
        Ok(known)
    }
}

/// What the store says; while it is away or takes too long, what was known.
async fn answer<T>(
    asked: impl Future<Output = rb_store::Result<T>>,
    known: Option<T>,
) -> ApiResult<T> {
    let within = if known.is_some() { CONFIRMED_WITHIN } else { FOUND_WITHIN };
    match (tokio::time::timeout(within, asked).await, known) {
        (Ok(Ok(said)), _) => Ok(said),
        (Ok(Err(_)) | Err(_), Some(known)) => Ok(known),
        (Ok(Err(error)), None) => Err(error.into()),
        (Err(_), None) => Err(ApiError::Unavailable),
    }
}
