//! Import through a running server: whole files, or groups of lines of line-based formats, one request at a time.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rb_runtime::import::ImportSummary;
use rb_server::api_client::{self, ClientError};
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::ImportArgs;
use crate::input::{Batch, Chunk, Diagnostics, Reading};
use crate::settings::{API_KEY, variable};
use crate::ui::{Out, counted, escape_control};

/// Maximum size of a request with several lines.
const MAX_BODY_BYTES: usize = 2 << 20;
/// HTTP status of a body above the limit of the server.
const PAYLOAD_TOO_LARGE: u16 = 413;

/// Sends all runs of the paths and returns the totals.
pub(super) fn send(
    args: &ImportArgs,
    url: &str,
    runtime: &Runtime,
    out: &mut Out,
) -> Result<(ImportSummary, Reading)> {
    let key = args.key.clone().or_else(|| variable(API_KEY));
    let mut sender =
        Sender { args, url, key, runtime, tally: ImportSummary::default(), file: None };
    let mut reading = Reading::start(&args.paths, out)?;
    let sent = reading.each(out, |batch, diagnostics, out| sender.send(batch, diagnostics, out));
    sender.close_file(out);
    sent.with_context(|| format!("cannot import through {url}"))?;
    Ok((sender.tally, reading))
}

struct Sender<'a> {
    args: &'a ImportArgs,
    url: &'a str,
    key: Option<String>,
    runtime: &'a Runtime,
    tally: ImportSummary,
    /// Current file and its totals.
    file: Option<(String, ImportSummary)>,
}

/// Response of the import route.
#[derive(Deserialize)]
struct ImportResponse {
    #[serde(flatten)]
    tally: ImportSummary,
    complaints: Vec<RemoteDiagnostic>,
    complaint_count: u64,
}

#[derive(Deserialize)]
struct RemoteDiagnostic {
    line: u64,
    text: String,
    is_loss: bool,
}

impl Sender<'_> {
    fn send(
        &mut self,
        batch: &Batch,
        diagnostics: &mut Diagnostics,
        out: &mut Out,
    ) -> io::Result<()> {
        let mut chunks = batch.chunks.as_slice();
        while let Some((first, _)) = chunks.split_first() {
            let (group, rest) = chunks.split_at(group_len(batch, chunks));
            chunks = rest;
            let mut bytes = Vec::new();
            for (at, chunk) in group.iter().enumerate() {
                if at > 0 && !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
                bytes.extend_from_slice(batch.bytes(chunk));
            }
            self.post(first, &bytes, diagnostics, out)?;
        }
        Ok(())
    }

    fn post(
        &mut self,
        first: &Chunk,
        bytes: &[u8],
        diagnostics: &mut Diagnostics,
        out: &mut Out,
    ) -> io::Result<()> {
        let name = &first.source.name;
        if self.file.as_ref().is_none_or(|(file, _)| file != name) {
            self.close_file(out);
            self.file = Some((name.clone(), ImportSummary::default()));
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes)?;
        let (path, packed) = (self.path(first), packed.finish()?);
        let sent = api_client::post_gzip(self.url, &path, self.key.as_deref(), packed);
        let response = match self.runtime.block_on(sent) {
            Ok(response) => response,
            Err(ClientError::Status { status: PAYLOAD_TOO_LARGE, detail }) => {
                let advice = "raise its `max_body_bytes`, or stop it and import without `--url`";
                let text = format!("{name}: the server rejected it: {detail}; {advice}");
                diagnostics.bad_path(&text, out);
                return Ok(());
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let response: ImportResponse = serde_json::from_value(response)?;
        for found in &response.complaints {
            let text = format!("{name}:{}: {}", found.line, escape_control(&found.text));
            if found.is_loss { diagnostics.bad_line(&text, out) } else { out.warning(&text) }
        }
        let hidden = response.complaint_count.saturating_sub(response.complaints.len() as u64);
        if hidden > 0 {
            out.warning(&format!("{name}: {} not shown", counted(hidden, "more diagnostic")));
        }
        self.tally = self.tally.merge(response.tally);
        if let Some((_, tally)) = &mut self.file {
            *tally = tally.merge(response.tally);
        }
        Ok(())
    }

    fn path(&self, first: &Chunk) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let stdin = first.source.stem();
        let file = if first.source.is_stdin() { stdin } else { &first.source.name };
        let line = first.line().map(|line| format!("&line={line}")).unwrap_or_default();
        format!(
            "/v1/monitor/import?format={}&file={}&org_id={}&project_id={}{line}",
            first.importer.id,
            encoded(file),
            encoded(&self.args.org),
            encoded(&self.args.project)
        )
    }

    /// Reports the totals of the current file.
    fn close_file(&mut self, out: &mut Out) {
        if let Some((name, tally)) = self.file.take().filter(|(_, tally)| tally.runs > 0) {
            let (runs, steps) = (counted(tally.runs, "run"), counted(tally.steps, "step"));
            out.note(&format!("{name}: {runs}, {steps}"));
        }
    }
}

/// Returns the number of chunks for one request: consecutive lines of one file, or one whole file.
fn group_len(batch: &Batch, chunks: &[Chunk]) -> usize {
    let mut bytes = 0;
    let follows = |pair: &[Chunk]| {
        let next = pair[0].line().map(|line| line + 1);
        next.is_some() && next == pair[1].line() && pair[0].source.name == pair[1].source.name
    };
    let fits = |pair: &&[Chunk]| {
        bytes += batch.bytes(&pair[0]).len();
        follows(pair) && bytes + batch.bytes(&pair[1]).len() <= MAX_BODY_BYTES
    };
    1 + chunks.windows(2).take_while(fits).count()
}
