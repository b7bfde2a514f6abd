//! The embedder of the monitors: the vectors in the binary, and where the operator has set up a transformer, its word on
//! what they suspect.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rb_embed::{CONFIRMATION_MIN_COSINE, TransformerError, TransformerWorker};
use rb_engine::analysis::embedding::{Embedder, Vector};
use tokio::runtime::{Handle, RuntimeFlavor};

/// A call on its way waits this long for a text of a second opinion, then it does without.
const LIVE_WITHIN: Duration = Duration::from_millis(100);
/// Nobody waits for a recorded run: only a model that is broken takes longer.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);
/// Directions remembered; two megabytes. A run that is replayed asks the same again.
const REMEMBERED_MAX: usize = 1_024;

/// The vectors in the binary, as the engine asks for them.
static PACKED: LazyLock<Arc<dyn Embedder>> =
    LazyLock::new(|| Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values())));

/// The vectors in the binary alone.
pub fn packed() -> Arc<dyn Embedder> {
    Arc::clone(&PACKED)
}

/// The vectors in the binary, confirmed by the transformer in a folder, for runs that are over.
pub fn confirmed_by(folder: &Path) -> Result<Arc<dyn Embedder>, TransformerError> {
    let transformer = Arc::new(TransformerWorker::open(folder.to_owned())?);
    Ok(Arc::new(Seconded::new(transformer, RECORDED_WITHIN)))
}

/// The same for agents that wait, by a transformer that is loaded already.
pub(crate) fn seconded(transformer: Arc<TransformerWorker>) -> Arc<dyn Embedder> {
    Arc::new(Seconded::new(transformer, LIVE_WITHIN))
}

struct Seconded {
    transformer: Arc<TransformerWorker>,
    answer_within: Duration,
    remembered: Mutex<HashMap<String, rb_embed::Vector>>,
}

impl Embedder for Seconded {
    fn embed(&self, text: &str) -> Vector {
        PACKED.embed(text)
    }

    /// Late or broken, it has no opinion, and the suspicion stands.
    fn second_opinion(&self, a: &str, b: &str) -> Option<bool> {
        let (a, b) = (self.direction(a)?, self.direction(b)?);
        Some(a.cosine(&b) >= CONFIRMATION_MIN_COSINE)
    }
}

impl Seconded {
    fn new(transformer: Arc<TransformerWorker>, answer_within: Duration) -> Self {
        Self { transformer, answer_within, remembered: Mutex::default() }
    }

    fn direction(&self, text: &str) -> Option<rb_embed::Vector> {
        let known = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = known().get(text) {
            return Some(vector.clone());
        }
        let ask = || self.transformer.embed_within(vec![text.to_owned()], self.answer_within);
        let vector = aside(ask)?.pop()?;
        let mut remembered = known();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(text.to_owned(), vector.clone());
        Some(vector)
    }
}

/// Waits without holding up other requests, where there are threads for them.
fn aside<T>(wait: impl FnOnce() -> T) -> T {
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
        confirmed_by(Path::new(folder)).unwrap()
    }

    #[test]
    fn the_transformer_has_an_opinion_and_the_vectors_have_none() {
        let seconded = tiny();
        let text = "the test fails again";
        assert_eq!(seconded.second_opinion(text, "The  TEST fails again"), Some(true));
        assert_eq!(seconded.second_opinion(text, ""), Some(false));
        assert_eq!(packed().second_opinion(text, text), None);
        assert_eq!(seconded.embed(text), packed().embed(text));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_may_be_asked_by_a_request() {
        assert_eq!(tiny().second_opinion("retry", "retry"), Some(true));
    }

    #[test]
    fn a_wrong_folder_is_refused() {
        assert!(confirmed_by(Path::new("/nowhere")).is_err());
    }
}
