//! Embeddings, similarity and search, all in the process.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rb_embed::{Calibration, DIMS, Index, Owner, SearchParams};
use rb_engine::analysis::embedding::{Embedder, Vector};

use crate::text::utf8;

/// How the engine compares meanings here: by the vectors inside the module.
pub(crate) fn embedder() -> Arc<dyn Embedder> {
    static EMBEDDER: LazyLock<Arc<dyn Embedder>> =
        LazyLock::new(|| Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values())));
    Arc::clone(&EMBEDDER)
}

/// The direction of a text: 256 numbers of length 1, or all zeros for a text that says nothing.
#[pyfunction]
pub(crate) fn embed(text: &Bound<'_, PyString>) -> PyResult<Vec<f32>> {
    Ok(rb_embed::embed(&utf8(text)?).values().to_vec())
}

/// How alike two texts are, from 0 to 1; at 0.8 and above they say nearly the same.
#[pyfunction]
pub(crate) fn similarity(a: &Bound<'_, PyString>, b: &Bound<'_, PyString>) -> PyResult<f32> {
    Ok(rb_embed::similarity(&utf8(a)?, &utf8(b)?))
}

/// Texts that are found by meaning.
#[pyclass(frozen)]
pub(crate) struct TextIndex {
    inner: Mutex<Index<String, u64>>,
}

#[pymethods]
impl TextIndex {
    #[new]
    fn new() -> Self {
        Self { inner: Mutex::new(Index::new(DIMS)) }
    }

    /// Adds a text, or replaces the one of that number.
    fn insert(&self, id: u64, text: &Bound<'_, PyString>) -> PyResult<()> {
        let vector = rb_embed::embed(&utf8(text)?);
        self.with(|index| index.insert(Owner::Shared, id, &vector))
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Forgets a text; false if there was none.
    fn remove(&self, id: u64) -> bool {
        self.with(|index| index.remove(&Owner::Shared, &id))
    }

    /// The nearest texts with a similarity of at least `score_threshold`, the best first: numbers and similarities.
    #[pyo3(signature = (query, *, top_k = 5, score_threshold = 0.25))]
    fn search(
        &self,
        query: &Bound<'_, PyString>,
        top_k: usize,
        score_threshold: f32,
    ) -> PyResult<Vec<(u64, f32)>> {
        let vector = rb_embed::embed(&utf8(query)?);
        let calibration = Calibration::STATIC_MODEL;
        let params =
            SearchParams { max_hits: top_k, min_cosine: calibration.cosine_at(score_threshold) };
        self.with(|index| {
            let hits = index.nearest_all_owners(&vector, params);
            let hits = hits.map_err(|error| PyValueError::new_err(error.to_string()))?;
            Ok(hits.iter().map(|hit| (*hit.id, calibration.similarity(hit.cosine))).collect())
        })
    }

    fn __len__(&self) -> usize {
        self.with(|index| index.len())
    }
}

impl TextIndex {
    /// A panic elsewhere leaves the index as it was before that call, so it may be used on.
    fn with<T>(&self, act: impl FnOnce(&mut Index<String, u64>) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
