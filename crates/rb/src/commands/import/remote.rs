//! Through a running server: whole files, or pieces of those whose lines stand for themselves, one after the other.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rb_server::ask::{self, AskError};
use rb_server::recorded::Tally;
use serde::Deserialize;
use tokio::runtime::Runtime;

use crate::cli::ImportArgs;
use crate::input::{Batch, Complaints, Piece, Reading};
use crate::out::{Out, counted, harmless};

/// Lines that stand for themselves are sent together up to this length.
const LINES_BYTES_MAX: usize = 2 << 20;
/// What the server answers to a body that is too long.
const TOO_LARGE: u16 = 413;

/// Sends everything that the paths name, and says what became of it.
pub(super) fn send(
    args: &ImportArgs,
    url: &str,
    runtime: &Runtime,
    out: &mut Out,
) -> Result<(Tally, Reading)> {
    let variable = std::env::var("REASONBLOCKS_API_KEY").ok().filter(|key| !key.is_empty());
    let key = args.key.clone().or(variable);
    let mut sender = Sender { args, url, key, runtime, tally: Tally::default(), file: None };
    let mut reading = Reading::start(&args.paths, out)?;
    let sent = reading.each(out, |batch, complaints, out| sender.batch(batch, complaints, out));
    sender.close_file(out);
    sent.with_context(|| format!("cannot import through {url}"))?;
    Ok((sender.tally, reading))
}

struct Sender<'a> {
    args: &'a ImportArgs,
    url: &'a str,
    key: Option<String>,
    runtime: &'a Runtime,
    tally: Tally,
    /// The file that is being sent, and what became of it so far.
    file: Option<(String, Tally)>,
}

/// What the server says of a body.
#[derive(Deserialize)]
struct Imported {
    #[serde(flatten)]
    tally: Tally,
    complaints: Vec<Told>,
    complaint_count: u64,
}

#[derive(Deserialize)]
struct Told {
    line: u64,
    text: String,
    is_loss: bool,
}

impl Sender<'_> {
    fn batch(
        &mut self,
        batch: &Batch,
        complaints: &mut Complaints,
        out: &mut Out,
    ) -> io::Result<()> {
        let mut pieces = batch.pieces.as_slice();
        while let Some((first, _)) = pieces.split_first() {
            let (together, rest) = pieces.split_at(together(batch, pieces));
            pieces = rest;
            let mut bytes = Vec::new();
            for (at, piece) in together.iter().enumerate() {
                if at > 0 && !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
                bytes.extend_from_slice(batch.bytes(piece));
            }
            self.body(first, &bytes, complaints, out)?;
        }
        Ok(())
    }

    fn body(
        &mut self,
        first: &Piece,
        bytes: &[u8],
        complaints: &mut Complaints,
        out: &mut Out,
    ) -> io::Result<()> {
        let name = &first.source.name;
        if self.file.as_ref().is_none_or(|(file, _)| file != name) {
            self.close_file(out);
            self.file = Some((name.clone(), Tally::default()));
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes)?;
        let (path, packed) = (self.path(first), packed.finish()?);
        let sent = ask::post_gzip(self.url, &path, self.key.as_deref(), packed);
        let said = match self.runtime.block_on(sent) {
            Ok(said) => said,
            Err(AskError::Refused { status: TOO_LARGE, said }) => {
                let advice = "raise `max_body_bytes` there, or stop it and import without `--url`";
                complaints
                    .path(&format!("{name}: the server does not take it: {said}; {advice}"), out);
                return Ok(());
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let said: Imported = serde_json::from_value(said)?;
        for told in &said.complaints {
            let text = format!("{name}:{}: {}", told.line, harmless(&told.text));
            if told.is_loss { complaints.line(&text, out) } else { out.warning(&text) }
        }
        let untold = said.complaint_count.saturating_sub(said.complaints.len() as u64);
        if untold > 0 {
            out.warning(&format!("{name}: {} like these", counted(untold, "more complaint")));
        }
        self.tally = self.tally.and(said.tally);
        if let Some((_, tally)) = &mut self.file {
            *tally = tally.and(said.tally);
        }
        Ok(())
    }

    fn path(&self, first: &Piece) -> String {
        let written = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let stdin = first.source.stem();
        let file = if first.source.is_stdin() { stdin } else { &first.source.name };
        let line = first.line().map(|line| format!("&line={line}")).unwrap_or_default();
        format!(
            "/v1/monitor/import?format={}&file={}&org_id={}&project_id={}{line}",
            first.importer.id,
            written(file),
            written(&self.args.org),
            written(&self.args.project)
        )
    }

    /// Tells what became of a file.
    fn close_file(&mut self, out: &mut Out) {
        if let Some((name, tally)) = self.file.take().filter(|(_, tally)| tally.runs > 0) {
            let (runs, steps) = (counted(tally.runs, "run"), counted(tally.steps, "step"));
            out.note(&format!("{name}: {runs}, {steps}"));
        }
    }
}

/// How many pieces, from the first on, go into one body: consecutive lines of one file, or a file alone.
fn together(batch: &Batch, pieces: &[Piece]) -> usize {
    let mut bytes = 0;
    let follows = |pair: &[Piece]| {
        let next = pair[0].line().map(|line| line + 1);
        next.is_some() && next == pair[1].line() && pair[0].source.name == pair[1].source.name
    };
    let fits = |pair: &&[Piece]| {
        bytes += batch.bytes(&pair[0]).len();
        follows(pair) && bytes + batch.bytes(&pair[1]).len() <= LINES_BYTES_MAX
    };
    1 + pieces.windows(2).take_while(fits).count()
}
