//! Import of recorded runs into a running server: accepts the same transcripts as `rb import`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use rb_wire::model::Run;
use rb_wire::transcripts::{Diagnostic, DiagnosticKind, IMPORTERS, Importer, sniff};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::body_decoding::{off_the_path, text_of, unpacked};
use rb_http::Authenticated;
use rb_http::body::{self, Query};
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::import::{ImportSource, ImportSummary, ImportedRun, fallback_run_id, file_stem};
use rb_runtime::limits::MAX_NAME_CHARS;

/// Maximum size of a transcript after decompression.
const BYTES_MAX: usize = 64 << 20;
/// Maximum number of diagnostics in a response; others are counted.
const COMPLAINTS_MAX: usize = 50;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(import))
}

/// Query of an import.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Sent {
    /// File name; runs without an id get one that is derived from it.
    #[param(max_length = 256)]
    file: Option<String>,
    /// Format name of docs/transcripts.md; detected from the content by default.
    format: Option<String>,
    /// Number of the first line of the body, counted from 1, if the body is a part of a line-based file.
    #[param(minimum = 1)]
    line: Option<u64>,
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Result of an import.
#[derive(Debug, Serialize, ToSchema)]
struct Imported {
    /// Detected format.
    format: &'static str,
    #[serde(flatten)]
    tally: ImportSummary,
    /// First fifty diagnostics.
    complaints: Vec<Told>,
    /// Total number of diagnostics.
    complaint_count: usize,
}

/// Diagnostic of an import.
#[derive(Debug, Serialize, ToSchema)]
struct Told {
    line: u64,
    text: String,
    /// Input was skipped; otherwise it was only repaired.
    is_loss: bool,
}

/// Imports recorded runs like `rb import`: a transcript in any supported format, plain or compressed with gzip.
///
/// The format is detected from the content. Runs from an earlier import are updated, not duplicated; runs that were
/// monitored live are never changed. Input that cannot be read is reported with its line number, and the rest is
/// imported.
#[utoipa::path(post, path = "/monitor/import", tag = "telemetry", params(Sent),
    request_body(content = String, content_type = "application/octet-stream"), responses(
    (status = 200, body = Imported),
    (status = 400, description = "not a transcript that is known", body = Problem),
    (status = 413, description = "larger than `MAX_BODY_BYTES`, or than 64 MiB unpacked", body = Problem),
    (status = 415, description = "packed otherwise than with gzip", body = Problem),
))]
async fn import(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(sent): Query<Sent>,
    request: Request,
) -> ApiResult<Json<Imported>> {
    let packing = text_of(&request, header::CONTENT_ENCODING);
    let bytes = body::read(request.into_body(), api.max_body_bytes).await?;
    let bytes = unpacked(bytes, packing.trim(), BYTES_MAX)?;
    let importer = importer(&sent, &bytes)?;
    let (org, project) = caller.org_and_project(sent.org_id.as_deref(), sent.project_id.as_deref());
    let shared = ApiState::clone(&api);
    let judge = move || {
        let file = sent.file.unwrap_or_default();
        let file: String = file.chars().take(MAX_NAME_CHARS).collect();
        let stem = if file.is_empty() { importer.id } else { file_stem(&file) };
        let mut found = (Vec::new(), Vec::new());
        each_piece(&bytes, sent.line, |piece, first| {
            let (runs, complaints) = (importer.parse)(piece);
            let judged = runs.iter().enumerate().map(|(at, run): (usize, &Run<'_>)| {
                let place = &fallback_run_id(stem, sent.line.map(|_| first), at, runs.len());
                let (org, project, file) = (&*org, &*project, &*file);
                let origin =
                    ImportSource { org, project, format: importer.id, file, fallback_id: place };
                ImportedRun::assess(run, &origin, &shared.runtime.prices)
            });
            found.0.extend(judged);
            found.1.extend(complaints.iter().map(|complaint| told(complaint, first)));
        });
        found
    };
    let (runs, mut complaints) = off_the_path(judge).await?;
    let tally = api.runtime.runs.import_all(runs).await?;
    let complaint_count = complaints.len();
    complaints.truncate(COMPLAINTS_MAX);
    Ok(Json(Imported { format: importer.id, tally, complaints, complaint_count }))
}

fn importer(sent: &Sent, bytes: &[u8]) -> ApiResult<&'static Importer> {
    let Some(format) = sent.format.as_deref().filter(|format| !format.is_empty()) else {
        let unknown = || ApiError::BadRequest(DiagnosticKind::Unrecognised.to_string());
        return sniff(bytes).ok_or_else(unknown);
    };
    let found = IMPORTERS.iter().find(|importer| importer.id == format);
    found.ok_or_else(|| {
        let names: Vec<&str> = IMPORTERS.iter().map(|importer| importer.id).collect();
        unprocessable(&["query", "format"], format!("there are {}", names.join(", ")))
    })
}

/// Passes on each line with its number, or the whole body if no line number is given.
fn each_piece(bytes: &[u8], line: Option<u64>, mut each: impl FnMut(&[u8], u64)) {
    let Some(first) = line else {
        each(bytes, 1);
        return;
    };
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(first..) {
        if !line.trim_ascii().is_empty() {
            each(line, number);
        }
    }
}

fn told(complaint: &Diagnostic, first: u64) -> Told {
    Told {
        line: first + complaint.line.saturating_sub(1),
        text: complaint.kind.to_string(),
        is_loss: complaint.is_loss(),
    }
}
