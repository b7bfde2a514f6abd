//! Store that passes every call to another store, unless a fault is set.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rb_store::{Change, NodeEvents, Result, Store, StoreError, for_each_store_read};
use tokio::sync::mpsc;

/// Time that a call to a locked store takes before it fails.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// Failure mode of a [`FaultyStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Calls succeed.
    #[default]
    None,
    /// Every call fails at once.
    Unavailable,
    /// Every call fails after `LOCK_TIMEOUT`.
    Locked,
    /// Reads succeed, writes fail.
    DiskFull,
    /// Reads panic, writes succeed.
    PanicOnRead,
    /// Reads succeed, writes fail because the run has changed.
    Conflict,
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// Wrapper around a store whose failure mode can be changed while it is in use.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    fault: Mutex<Fault>,
    is_shared: AtomicBool,
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        let is_shared = AtomicBool::new(inner.is_shared());
        Arc::new(Self { inner, fault: Mutex::default(), is_shared })
    }

    /// Sets the failure mode of all later calls.
    pub fn set_fault(&self, fault: Fault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Sets the value of [`Store::is_shared`].
    pub fn set_shared(&self, is_shared: bool) {
        self.is_shared.store(is_shared, Ordering::SeqCst);
    }

    #[expect(clippy::panic, reason = "one of the faults is a panic")]
    async fn check(&self, access: Access) -> Result<()> {
        let unavailable = |why: &str| Err(StoreError::Unavailable(why.to_owned()));
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match (fault, access) {
            (Fault::Unavailable, _) => unavailable("injected: unavailable"),
            (Fault::Locked, _) => {
                tokio::time::sleep(LOCK_TIMEOUT).await;
                unavailable("injected: database is locked")
            }
            (Fault::DiskFull, Access::Write) => unavailable("injected: disk is full"),
            (Fault::PanicOnRead, Access::Read) => panic!("injected"),
            (Fault::Conflict, Access::Write) => Err(StoreError::VersionConflict),
            (Fault::None, _)
            | (Fault::DiskFull | Fault::Conflict, Access::Read)
            | (Fault::PanicOnRead, Access::Write) => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Store for FaultyStore {
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.check(Access::Write).await?;
        self.inner.apply(changes).await
    }

    async fn ping(&self) -> Result<()> {
        self.check(Access::Read).await?;
        self.inner.ping().await
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl NodeEvents for FaultyStore {
    async fn publish(&self, node: &str, at_ms: i64, messages: Vec<String>) -> Result<()> {
        self.check(Access::Read).await?;
        self.inner.publish(node, at_ms, messages).await
    }

    fn subscribe(&self, node: &str) -> Option<mpsc::Receiver<String>> {
        self.inner.subscribe(node)
    }
}

macro_rules! check_then_delegate {
    ($($area:ident { $($name:ident($($argument:ident: $kind:ty),*) -> $output:ty;)* })*) => {$(
        #[async_trait::async_trait]
        impl rb_store::$area for FaultyStore {
            $(async fn $name(&self, $($argument: $kind),*) -> Result<$output> {
                self.check(Access::Read).await?;
                self.inner.$name($($argument),*).await
            })*
        }
    )*};
}

for_each_store_read!(check_then_delegate);

#[cfg(test)]
mod tests {
    use rb_store::{Runs as _, Scope};

    use super::*;

    #[tokio::test]
    async fn each_fault_affects_reads_and_writes_as_documented() {
        let store = FaultyStore::new(rb_store::open("sqlite::memory:").await.unwrap());
        for (fault, reads, writes) in [
            (Fault::None, true, true),
            (Fault::Unavailable, false, false),
            (Fault::DiskFull, true, false),
            (Fault::Conflict, true, false),
            (Fault::None, true, true),
        ] {
            store.set_fault(fault);
            assert_eq!(store.run(&Scope::default(), "r").await.is_ok(), reads, "{fault:?}");
            let change = Change::PutSetting { name: "colour".to_owned(), value: "red".to_owned() };
            assert_eq!(store.apply(vec![change]).await.is_ok(), writes, "{fault:?}");
        }
    }

    #[tokio::test]
    async fn a_locked_store_blocks_the_caller() {
        let store = FaultyStore::new(rb_store::open("sqlite::memory:").await.unwrap());
        store.set_fault(Fault::Locked);
        assert!(tokio::time::timeout(Duration::from_millis(50), store.ping()).await.is_err());
    }

    #[tokio::test]
    async fn a_panic_fault_panics_on_reads_only() {
        let store = FaultyStore::new(rb_store::open("sqlite::memory:").await.unwrap());
        store.set_fault(Fault::PanicOnRead);
        assert!(store.apply(Vec::new()).await.is_ok());
        let reading = Arc::clone(&store);
        assert!(tokio::spawn(async move { reading.ping().await }).await.unwrap_err().is_panic());
    }
}
