//! Optional embedding backend for retrieval: a sentence transformer or an OpenAI-compatible endpoint. It may be slow or
//! unavailable, so its vectors are cached and calls have a timeout.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request};
use parking_lot::Mutex;
use rb_embed::{Calibration, TransformerError, TransformerWorker, Vector};
use rb_engine::analysis::embedding::Embedder;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::embedding;
use crate::cache::BoundedCache;
use crate::http_client::{self, HttpClient};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause after a failed call.
const COOLDOWN: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
/// Texts per call.
const BATCH_SIZE: usize = 64;
/// Vectors; some megabytes.
const CACHE_CAPACITY: usize = 4_096;

/// Source of the vectors that retrieval compares.
#[derive(Clone, PartialEq, Eq)]
pub enum EmbeddingConfig {
    /// Vectors of the binary.
    Builtin,
    /// Sentence transformer in this folder.
    Folder(PathBuf),
    /// OpenAI-compatible endpoint.
    Endpoint { url: String, model: String, key: String },
}

impl std::fmt::Debug for EmbeddingConfig {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Builtin => f.write_str("Builtin"),
            Self::Folder(folder) => write!(f, "Folder({})", folder.display()),
            Self::Endpoint { url, model, .. } => write!(f, "Endpoint({url}, {model})"),
        }
    }
}

/// Reason why the backend returned no vectors.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmbeddingError {
    #[error(transparent)]
    Transformer(#[from] TransformerError),
    #[error("the embedding endpoint failed a moment ago")]
    CoolingDown,
    #[error("the embedding endpoint did not answer within {} s", RESPONSE_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the embedding endpoint cannot be used: {0}")]
    Endpoint(String),
}

/// Embedding backend set up by the operator, with a cache of its vectors.
pub struct EmbeddingBackend {
    kind: Kind,
    cache: BoundedCache<String, Vector>,
}

enum Kind {
    Folder(Arc<TransformerWorker>),
    Endpoint(Box<Endpoint>),
}

struct Endpoint {
    client: HttpClient,
    url: String,
    model: String,
    key: String,
    failed: Mutex<Option<Instant>>,
}

impl EmbeddingBackend {
    /// All kinds are sentence encoders of one family; the curve was fitted on the smallest one.
    pub(super) const CALIBRATION: Calibration = Calibration::MINILM;

    /// Opens the configured backend; `None` for the built-in vectors.
    pub fn open(config: &EmbeddingConfig) -> Result<Option<Self>, TransformerError> {
        let kind = match config {
            EmbeddingConfig::Builtin => return Ok(None),
            EmbeddingConfig::Folder(folder) => {
                Kind::Folder(Arc::new(TransformerWorker::open(folder.clone())?))
            }
            EmbeddingConfig::Endpoint { url, model, key } => Kind::Endpoint(Box::new(Endpoint {
                client: http_client::new(),
                url: format!("{url}/embeddings"),
                model: model.clone(),
                key: key.clone(),
                failed: Mutex::default(),
            })),
        };
        Ok(Some(Self { kind, cache: BoundedCache::new(CACHE_CAPACITY) }))
    }

    /// Embedder of the monitors. An endpoint is too slow to be called during the assessment of a step.
    pub fn monitor_embedder(&self) -> Arc<dyn Embedder> {
        match &self.kind {
            Kind::Folder(transformer) => embedding::confirmed_live(Arc::clone(transformer)),
            Kind::Endpoint(_) => embedding::builtin(),
        }
    }

    /// Returns the vectors of texts, in their order.
    pub(super) async fn embed(&self, texts: &[String]) -> Result<Vec<Vector>, EmbeddingError> {
        let mut vectors: HashMap<&String, Vector> = HashMap::new();
        let mut missing = Vec::new();
        for text in texts {
            match self.cache.get(text) {
                Some(vector) => drop(vectors.insert(text, vector)),
                None => missing.push(text.clone()),
            }
        }
        missing.sort();
        missing.dedup();
        for batch in missing.chunks(BATCH_SIZE) {
            let embedded = match &self.kind {
                Kind::Folder(transformer) => transform(transformer, batch.to_vec()).await?,
                Kind::Endpoint(endpoint) => endpoint.embed(batch).await?,
            };
            for (text, vector) in batch.iter().zip(embedded) {
                self.cache.insert(text.clone(), vector.clone());
                vectors.insert(text, vector);
            }
        }
        let all: Option<Vec<Vector>> =
            texts.iter().map(|text| vectors.get(text).cloned()).collect();
        all.ok_or_else(|| EmbeddingError::Endpoint("it left out a text".to_owned()))
    }
}

/// Embeds texts on the transformer's thread.
async fn transform(
    transformer: &TransformerWorker,
    texts: Vec<String>,
) -> Result<Vec<Vector>, EmbeddingError> {
    let (done, answer) = oneshot::channel();
    transformer.embed(texts, move |vectors| drop(done.send(vectors))); // fails if the caller was cancelled
    let ended = |_| TransformerError::Run { reason: "its thread ended".to_owned() };
    Ok(answer.await.map_err(ended)??)
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingRow>,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    index: usize,
    embedding: Vec<f32>,
}

impl Endpoint {
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vector>, EmbeddingError> {
        let failed = *self.failed.lock();
        if failed.is_some_and(|at| at.elapsed() < COOLDOWN) {
            return Err(EmbeddingError::CoolingDown);
        }
        let answered = match tokio::time::timeout(RESPONSE_TIMEOUT, self.ask(texts)).await {
            Ok(answered) => answered.map_err(EmbeddingError::Endpoint),
            Err(_) => Err(EmbeddingError::TimedOut),
        };
        let failed = answered.is_err().then(Instant::now);
        *self.failed.lock() = failed;
        answered
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vector>, String> {
        let asked = EmbeddingRequest { model: &self.model, input: texts };
        let body = serde_json::to_vec(&asked).map_err(|error| error.to_string())?;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(CONTENT_TYPE, "application/json");
        if !self.key.is_empty() {
            request = request.header(AUTHORIZATION, format!("Bearer {}", self.key));
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|e| e.to_string())?;
        let reply = self.client.request(request).await.map_err(|error| error.to_string())?;
        let status = reply.status();
        let body = Limited::new(reply.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if !status.is_success() {
            return Err(format!("it answered {status}"));
        }
        let answer: EmbeddingResponse =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let mut vectors = vec![None; texts.len()];
        for row in answer.data {
            if let Some(place) = vectors.get_mut(row.index) {
                *place = Some(Vector::from_values(row.embedding));
            }
        }
        vectors.into_iter().collect::<Option<_>>().ok_or_else(|| "it left out a text".to_owned())
    }
}
