//! Difficulty score of a thought.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::body::Body;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(score))
}

/// Thought to score.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ScoreBody {
    text: Option<String>,
    /// Accepted for compatibility; the score depends only on the text.
    #[serde(rename = "context")]
    _context: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Score {
    /// From 0 (easy) to 1 (hard); 0.5 for an empty text.
    difficulty: f64,
}

/// Scores a thought.
#[utoipa::path(post, path = "/score", tag = "steering", request_body = ScoreBody, responses(
    (status = 200, body = Score),
))]
async fn score(_: Authenticated, Body(body): Body<ScoreBody>) -> Json<Score> {
    let text = body.text.unwrap_or_default();
    Json(Score { difficulty: rb_engine::analysis::difficulty::difficulty(&text) })
}
