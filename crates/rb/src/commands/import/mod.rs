//! `rb import`: stores recorded runs, directly or through a running server.
//!
//! Without a server, all cores parse and assess, and new data is written in commits of many runs. A server receives the
//! transcripts and does the same.

/// Import through a running server.
mod remote;

use std::io;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rayon::prelude::*;
use rb_runtime::import::{ImportSource, ImportSummary, ImportWriter, ImportedRun};
use rb_runtime::prices::Prices;
use rb_wire::transcripts::Diagnostic;
use tokio::runtime::Runtime;

use crate::exit::Exit;
use crate::input::{Batch, Chunk, Diagnostics, Reading};
use crate::settings::{DataArgs, Settings};
use crate::ui::{BOLD, Out, counted, grouped};

/// Imports recorded runs, to be viewed in the dashboard.
///
/// Reads the formats of `rb check` and assesses runs in the same way. Names, times, models, tokens, costs and outcomes
/// are kept where the source has them. A repeated import updates the runs: a session that has grown gets its new steps.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ImportArgs {
    /// Files, directories or `-` for standard input, as in `rb check`.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Organisation of the runs.
    #[arg(long, value_name = "ID", default_value = rb_runtime::auth::DEFAULT_ORG)]
    org: String,

    /// Project of the runs.
    #[arg(long, value_name = "ID", default_value = rb_runtime::auth::DEFAULT_PROJECT)]
    project: String,

    /// Import through this running server instead of opening the database.
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// API key of that server; default: `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY", requires = "url")]
    key: Option<String>,

    #[command(flatten)]
    data: DataArgs,
}

const AFTER_HELP: &str = "\
Runs are matched by id; if ids may repeat, also by start time or first step. Runs that were watched
live are never changed. Runs without timestamps get the import time.

Exit codes:
  0  everything was imported
  2  an error: unreadable path, bad line or no run at all; everything else was imported

Examples:
  rb import ~/.claude/projects/
  rb import results/*.jsonl.gz --project nightly
  rb import ~/.claude/projects/ --url http://127.0.0.1:9000
  rb import session.jsonl --data-dir /var/lib/reasonblocks && rb serve";

pub(crate) fn run(args: &ImportArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (tally, reading) = match &args.url {
        Some(url) => remote::send(args, url, &runtime, out)?,
        None => store(args, runtime, out)?,
    };
    let exit = if reading.diagnostics.any_loss() { Exit::Error } else { Exit::Quiet };
    if tally.runs > 0 {
        out.result(&summary(&tally))?;
        out.result(&reading.diagnostics.summary())?;
        out.finish()?;
    }
    reading.finish()?;
    if tally.runs == 0 && exit == Exit::Quiet {
        bail!("no run with steps found; `rb check --help` lists the supported formats");
    }
    if tally.runs > 0 && args.url.is_none() {
        out.note(
            "`rb runs` lists the runs, `rb show RUN` shows one, `rb serve` starts the dashboard",
        );
    }
    Ok(exit)
}

fn store(args: &ImportArgs, runtime: Runtime, out: &mut Out) -> Result<(ImportSummary, Reading)> {
    let settings = Settings::load(&args.data)?;
    let opened = runtime.block_on(settings.open()).with_context(|| store_error(&settings))?;
    let prices = Prices::new(settings.raw.prices.clone());
    let mut reading = Reading::start(&args.paths, out)?;
    let mut importer = StoreImporter { args, prices, runtime, writer: ImportWriter::new(opened) };
    let written =
        reading.each(out, |batch, diagnostics, out| importer.import(batch, diagnostics, out));
    written.and_then(|()| importer.flush()).with_context(|| store_error(&settings))?;
    Ok((importer.writer.summary, reading))
}

fn store_error(settings: &Settings) -> String {
    if !settings.database_url().starts_with("sqlite:") {
        return "cannot write to the database".to_owned();
    }
    let listen = &settings.raw.listen;
    format!(
        "cannot write to the database; if a server is using it, import through the server with `--url http://{listen}`"
    )
}

struct StoreImporter<'a> {
    args: &'a ImportArgs,
    prices: Prices,
    runtime: Runtime,
    writer: ImportWriter,
}

impl StoreImporter<'_> {
    fn import(
        &mut self,
        batch: &Batch,
        diagnostics: &mut Diagnostics,
        out: &mut Out,
    ) -> io::Result<()> {
        let assess = |chunk: &Chunk| self.assess(chunk, batch.bytes(chunk));
        let assessed: Vec<_> = batch.chunks.par_iter().map(assess).collect();
        for (chunk, (runs, found)) in batch.chunks.iter().zip(assessed) {
            diagnostics.report_chunk(chunk, &found, out);
            for run in runs {
                self.runtime.block_on(self.writer.add(run)).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    /// Assesses the runs of a chunk; runs without steps are `None`.
    fn assess(&self, chunk: &Chunk, bytes: &[u8]) -> (Vec<Option<ImportedRun>>, Vec<Diagnostic>) {
        let (runs, diagnostics) = (chunk.importer.parse)(bytes);
        let assessed = runs.par_iter().enumerate().map(|(at, run)| {
            let origin = ImportSource {
                org: &self.args.org,
                project: &self.args.project,
                format: chunk.importer.id,
                file: &chunk.source.name,
                fallback_id: &chunk.fallback_run_id(at, runs.len()),
            };
            ImportedRun::assess(run, &origin, &self.prices)
        });
        (assessed.collect(), diagnostics)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.runtime.block_on(self.writer.flush()).map_err(io::Error::other)
    }
}

fn summary(tally: &ImportSummary) -> String {
    let grown = format!(" updated ({})", counted(tally.grown_steps, "step"));
    let parts = [
        (tally.new_runs, " new"),
        (tally.grown_runs, &grown),
        (tally.same_runs, " unchanged"),
        (tally.empty_runs, " without steps skipped"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, what)| format!("{}{what}", grouped(count))).collect();
    format!(
        "{BOLD}{}{BOLD:#}, {}: {}; a monitor fired in {}\n",
        counted(tally.runs, "run"),
        counted(tally.steps, "step"),
        parts.join(", "),
        grouped(tally.fired_runs),
    )
}
