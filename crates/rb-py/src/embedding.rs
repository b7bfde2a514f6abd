//! Embeddings, similarity and vector search, all in-process.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rb_embed::{Calibration, DIMS, Index, Owner, SearchParams};
use rb_engine::analysis::embedding::{Embedder, Vector};

use crate::text::utf8;

/// Returns the embedder of the engine: the static model that is compiled into this module.
pub(crate) fn embedder() -> Arc<dyn Embedder> {
    static EMBEDDER: LazyLock<Arc<dyn Embedder>> =
        LazyLock::new(|| Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values())));
    Arc::clone(&EMBEDDER)
}

/// Returns the embedding of a text: a unit vector of 256 numbers, or all zeros for a text without known words.
#[pyfunction]
pub(crate) fn embed(text: &Bound<'_, PyString>) -> PyResult<Vec<f32>> {
    Ok(rb_embed::embed(&utf8(text)?).values().to_vec())
}

/// Returns the similarity of two texts, from 0 to 1; 0.8 and above means nearly the same.
#[pyfunction]
pub(crate) fn similarity(a: &Bound<'_, PyString>, b: &Bound<'_, PyString>) -> PyResult<f32> {
    Ok(rb_embed::similarity(&utf8(a)?, &utf8(b)?))
}

/// Index of texts for similarity search.
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

    /// Adds a text, or replaces the text with this id.
    fn insert(&self, id: u64, text: &Bound<'_, PyString>) -> PyResult<()> {
        let vector = rb_embed::embed(&utf8(text)?);
        self.with(|index| index.insert(Owner::Shared, id, &vector))
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Removes a text; returns false if the id is unknown.
    fn remove(&self, id: u64) -> bool {
        self.with(|index| index.remove(&Owner::Shared, &id))
    }

    /// Returns ids and similarities of the nearest texts with at least `score_threshold`, best first.
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
    /// Ignores lock poisoning: a panic inside a call leaves the index unchanged.
    fn with<T>(&self, act: impl FnOnce(&mut Index<String, u64>) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
