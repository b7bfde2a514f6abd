//! Sessions of signed-in browsers, in memory. A session belongs to a key or to the sign-in link printed at startup.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq as _;

/// Idle time after which a session expires.
pub(crate) const SESSION_TTL: Duration = Duration::from_hours(12);
/// Maximum number of sessions; beyond this, the oldest is dropped.
const MAX_SESSIONS: usize = 1_000;
/// Validity of the sign-in link, which works once.
const LINK_TTL: Duration = Duration::from_mins(15);
/// Failed sign-ins per `WINDOW`, after which all are rejected.
const MAX_FAILURES: u32 = 20;
const WINDOW: Duration = Duration::from_mins(1);

/// Sessions and sign-in state.
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Session>>,
    /// CSRF token while the server needs no key.
    pub(crate) token: Option<String>,
    link: Mutex<Option<(Instant, String)>>,
    failures: Mutex<(Instant, u32)>,
}

/// Identity of a session.
#[derive(Clone)]
pub(crate) enum Who {
    /// Holder of a key, while the key is valid.
    Key(String),
    /// Reader of the server's startup message.
    Link,
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) who: Who,
    /// CSRF token.
    pub(crate) token: String,
    used: Instant,
}

/// Random id; `None` if the system has no entropy source.
fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            token: random(),
            link: Mutex::default(),
            failures: Mutex::new((Instant::now(), 0)),
        }
    }
}

impl Sessions {
    /// Creates the secret of the sign-in link and invalidates the previous one.
    pub(crate) fn new_link(&self) -> Option<String> {
        let secret = random()?;
        *lock(&self.link) = Some((Instant::now(), secret.clone()));
        Some(secret)
    }

    /// Returns `true` if this is the secret of the sign-in link, which is then invalidated.
    pub(crate) fn take_link(&self, given: &str) -> bool {
        let mut link = lock(&self.link);
        let is_it = link.as_ref().is_some_and(|(made, secret)| {
            made.elapsed() < LINK_TTL && bool::from(secret.as_bytes().ct_eq(given.as_bytes()))
        });
        if is_it {
            *link = None;
        }
        is_it
    }

    /// Returns `true` if the limit of failed sign-ins is reached.
    pub(crate) fn is_too_soon(&self) -> bool {
        let (since, failures) = *lock(&self.failures);
        since.elapsed() < WINDOW && failures >= MAX_FAILURES
    }

    pub(crate) fn note_failure(&self) {
        let mut failures = lock(&self.failures);
        if failures.0.elapsed() >= WINDOW {
            *failures = (Instant::now(), 0);
        }
        failures.1 = failures.1.saturating_add(1);
    }

    pub(crate) fn begin(&self, who: Who) -> Option<String> {
        let (name, token) = (random()?, random()?);
        let mut open = lock(&self.open);
        open.retain(|_, session| session.used.elapsed() < SESSION_TTL);
        if open.len() >= MAX_SESSIONS {
            let oldest = open.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                open.remove(&oldest);
            }
        }
        open.insert(name.clone(), Session { who, token, used: Instant::now() });
        Some(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Session> {
        let mut open = lock(&self.open);
        let session = open.get_mut(name).filter(|session| session.used.elapsed() < SESSION_TTL)?;
        session.used = Instant::now();
        Some(session.clone())
    }

    pub(crate) fn end(&self, name: &str) {
        lock(&self.open).remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_good_once_and_only_the_newest() {
        let sessions = Sessions::default();
        assert!(!sessions.take_link(""), "there is none yet");
        let first = sessions.new_link().unwrap();
        let second = sessions.new_link().unwrap();
        assert!(!sessions.take_link(&first));
        assert!(sessions.take_link(&second));
        assert!(!sessions.take_link(&second));
    }

    #[test]
    fn an_old_link_is_worth_nothing() {
        let sessions = Sessions::default();
        let secret = sessions.new_link().unwrap();
        let Some(long_ago) = Instant::now().checked_sub(LINK_TTL) else { return };
        lock(&sessions.link).as_mut().unwrap().0 = long_ago;
        assert!(!sessions.take_link(&secret));
    }

    #[test]
    fn too_many_failures_close_the_door_for_a_while() {
        let sessions = Sessions::default();
        for _ in 0..MAX_FAILURES {
            assert!(!sessions.is_too_soon());
            sessions.note_failure();
        }
        assert!(sessions.is_too_soon());
        let Some(long_ago) = Instant::now().checked_sub(WINDOW) else { return };
        lock(&sessions.failures).0 = long_ago;
        assert!(!sessions.is_too_soon());
        sessions.note_failure();
        assert_eq!(lock(&sessions.failures).1, 1);
    }
}
