//! What turns situations into directions: the vectors inside the binary, and something better where the operator
//! has set it up. The better one may be slow or away, so its vectors are remembered and nobody waits for it long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request};
use rb_embed::{Calibration, TransformerError, TransformerWorker, Vector};
use rb_engine::analysis::embedding::Embedder;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::config::Embedding;
use crate::outbound::{self, Outbound};
use crate::seconded;

/// The endpoint has this long to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// After a failure it is left alone for this long.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// An answer is never longer.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Texts sent at once.
const TEXTS_AT_ONCE: usize = 64;
/// Vectors remembered; some megabytes.
const REMEMBERED_MAX: usize = 4_096;

/// Why a text has no direction at the moment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeaningError {
    #[error(transparent)]
    Transformer(#[from] TransformerError),
    #[error("the embedding endpoint failed a moment ago")]
    Resting,
    #[error("the embedding endpoint did not answer within {} s", ANSWER_WITHIN.as_secs())]
    Late,
    #[error("the embedding endpoint cannot be used: {0}")]
    Endpoint(String),
}

/// A better embedder than the one in the binary.
pub(crate) struct Better {
    kind: Kind,
    remembered: Mutex<HashMap<String, Vector>>,
}

enum Kind {
    Folder(Arc<TransformerWorker>),
    Endpoint(Box<Endpoint>),
}

struct Endpoint {
    client: Outbound,
    url: String,
    model: String,
    key: String,
    failed: Mutex<Option<Instant>>,
}

impl Better {
    /// All kinds are sentence encoders of one family; the curve was fitted on the smallest one.
    pub(crate) const CALIBRATION: Calibration = Calibration::MINILM;

    /// What the operator has set up; `None` for the vectors in the binary.
    pub(crate) fn open(embedding: &Embedding) -> Result<Option<Self>, TransformerError> {
        let kind = match embedding {
            Embedding::Packed => return Ok(None),
            Embedding::Folder(folder) => {
                Kind::Folder(Arc::new(TransformerWorker::open(folder.clone())?))
            }
            Embedding::Endpoint { url, model, key } => Kind::Endpoint(Box::new(Endpoint {
                client: outbound::client(),
                url: format!("{url}/embeddings"),
                model: model.clone(),
                key: key.clone(),
                failed: Mutex::default(),
            })),
        };
        Ok(Some(Self { kind, remembered: Mutex::default() }))
    }

    /// What the monitors compare by: an endpoint is too far away to be asked in the middle of a step.
    pub(crate) fn for_monitors(&self) -> Arc<dyn Embedder> {
        match &self.kind {
            Kind::Folder(transformer) => seconded::seconded(Arc::clone(transformer)),
            Kind::Endpoint(_) => seconded::packed(),
        }
    }

    /// The directions of texts, in their order.
    pub(crate) async fn embed(&self, texts: &[String]) -> Result<Vec<Vector>, MeaningError> {
        let mut missing: Vec<String> = {
            let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            texts.iter().filter(|text| !remembered.contains_key(*text)).cloned().collect()
        };
        missing.sort();
        missing.dedup();
        let mut fresh = HashMap::new();
        for some in missing.chunks(TEXTS_AT_ONCE) {
            let vectors = match &self.kind {
                Kind::Folder(transformer) => by_folder(transformer, some.to_vec()).await?,
                Kind::Endpoint(endpoint) => endpoint.embed(some).await?,
            };
            fresh.extend(some.iter().cloned().zip(vectors));
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |text: &String| fresh.get(text).or_else(|| remembered.get(text)).cloned();
        let all: Option<Vec<Vector>> = texts.iter().map(known).collect();
        if remembered.len() + fresh.len() > REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.extend(fresh);
        all.ok_or_else(|| MeaningError::Endpoint("it left out a text".to_owned()))
    }
}

/// The directions of texts by the transformer, when their turn comes.
async fn by_folder(
    transformer: &TransformerWorker,
    texts: Vec<String>,
) -> Result<Vec<Vector>, MeaningError> {
    let (done, answer) = oneshot::channel();
    transformer.embed(texts, move |vectors| drop(done.send(vectors))); // a caller that has gone needs none
    let ended = |_| TransformerError::Run { reason: "its thread ended".to_owned() };
    Ok(answer.await.map_err(ended)??)
}

#[derive(Serialize)]
struct Asked<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

impl Endpoint {
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vector>, MeaningError> {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some_and(|at| at.elapsed() < REST_AFTER_FAILURE) {
            return Err(MeaningError::Resting);
        }
        let answered = match tokio::time::timeout(ANSWER_WITHIN, self.ask(texts)).await {
            Ok(answered) => answered.map_err(MeaningError::Endpoint),
            Err(_) => Err(MeaningError::Late),
        };
        let failed = answered.is_err().then(Instant::now);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        answered
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vector>, String> {
        let asked = Asked { model: &self.model, input: texts };
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
        let body = Limited::new(reply.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if !status.is_success() {
            return Err(format!("it answered {status}"));
        }
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let mut vectors = vec![None; texts.len()];
        for row in answer.data {
            if let Some(place) = vectors.get_mut(row.index) {
                *place = Some(Vector::from_values(row.embedding));
            }
        }
        vectors.into_iter().collect::<Option<_>>().ok_or_else(|| "it left out a text".to_owned())
    }
}
