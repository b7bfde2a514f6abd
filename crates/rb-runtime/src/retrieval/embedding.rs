//! Embedder of the monitors: the built-in vectors, optionally with a transformer that confirms what they suspect.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rb_embed::{CONFIRMATION_MIN_COSINE, TransformerError, TransformerWorker};
use rb_engine::analysis::embedding::{Embedder, Vector};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::cache::BoundedCache;

/// Timeout of a confirmation during a live call; the call goes on without it.
const LIVE_TIMEOUT: Duration = Duration::from_millis(100);
/// Timeout of a confirmation for a recorded run, where only a broken model takes longer.
const RECORDED_TIMEOUT: Duration = Duration::from_secs(10);
/// Vectors; two megabytes. A replayed run asks for the same ones.
const CACHE_CAPACITY: usize = 1_024;

static BUILTIN: LazyLock<Arc<dyn Embedder>> =
    LazyLock::new(|| Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values())));

/// Returns the embedder with the vectors of the binary.
pub fn builtin() -> Arc<dyn Embedder> {
    Arc::clone(&BUILTIN)
}

/// Returns the built-in embedder confirmed by the transformer in a folder, for recorded runs.
pub fn with_transformer(folder: &Path) -> Result<Arc<dyn Embedder>, TransformerError> {
    let transformer = Arc::new(TransformerWorker::open(folder.to_owned())?);
    Ok(Arc::new(ConfirmingEmbedder::new(transformer, RECORDED_TIMEOUT)))
}

/// Returns the built-in embedder confirmed by a loaded transformer, for live runs.
pub(super) fn confirmed_live(transformer: Arc<TransformerWorker>) -> Arc<dyn Embedder> {
    Arc::new(ConfirmingEmbedder::new(transformer, LIVE_TIMEOUT))
}

struct ConfirmingEmbedder {
    transformer: Arc<TransformerWorker>,
    timeout: Duration,
    cache: BoundedCache<String, rb_embed::Vector>,
}

impl Embedder for ConfirmingEmbedder {
    fn embed(&self, text: &str) -> Vector {
        BUILTIN.embed(text)
    }

    /// Returns `None` after a timeout or failure, so that the suspicion of the built-in vectors counts.
    fn second_opinion(&self, a: &str, b: &str) -> Option<bool> {
        let (a, b) = (self.vector(a)?, self.vector(b)?);
        Some(a.cosine(&b) >= CONFIRMATION_MIN_COSINE)
    }
}

impl ConfirmingEmbedder {
    fn new(transformer: Arc<TransformerWorker>, timeout: Duration) -> Self {
        Self { transformer, timeout, cache: BoundedCache::new(CACHE_CAPACITY) }
    }

    fn vector(&self, text: &str) -> Option<rb_embed::Vector> {
        if let Some(vector) = self.cache.get(text) {
            return Some(vector);
        }
        let embed = || self.transformer.embed_within(vec![text.to_owned()], self.timeout);
        let vector = block(embed)?.pop()?;
        self.cache.insert(text.to_owned(), vector.clone());
        Some(vector)
    }
}

/// Blocks without stalling other tasks on a multi-threaded runtime.
fn block<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        Ok(_) | Err(_) => wait(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Arc<dyn Embedder> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../rb-embed/tests/it/tiny_model");
        with_transformer(Path::new(folder)).unwrap()
    }

    #[test]
    fn only_the_transformer_has_a_second_opinion() {
        let confirming = tiny();
        let text = "the test fails again";
        assert_eq!(confirming.second_opinion(text, "The  TEST fails again"), Some(true));
        assert_eq!(confirming.second_opinion(text, ""), Some(false));
        assert_eq!(builtin().second_opinion(text, text), None);
        assert_eq!(confirming.embed(text), builtin().embed(text));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_may_ask_for_a_second_opinion() {
        assert_eq!(tiny().second_opinion("retry", "retry"), Some(true));
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(with_transformer(Path::new("/nowhere")).is_err());
    }
}
