//! `rb report`: runs as one HTML page.
//!
//! Transcripts are assessed as in `rb check`. Only the worst runs are rendered and kept in full, so memory use does not
//! depend on the input.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rayon::prelude::*;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::policy::Policy;
use rb_runtime::retrieval::embedding;
use rb_view::{Listed, Markup, StateReplay};
use rb_wire::transcripts::Diagnostic;

use super::runs::{all_steps, find_run};
use crate::engine_args::SuiteArg;
use crate::exit::Exit;
use crate::input::{Batch, Chunk, Diagnostics, Reading};
use crate::settings::{DataArgs, Settings};
use crate::ui::{Out, counted};

/// Renders runs as one HTML page: what happened, what went wrong, and why.
///
/// The page is a single file without scripts or external resources. For a directory, it lists all runs, worst first,
/// compares agents and models, and shows the worst runs in full.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ReportArgs {
    /// Transcript or directory in any format of `rb check`, `-` for standard input, or the id of a stored run.
    #[arg(value_name = "RUN|FILE|DIR")]
    what: String,

    /// Output file; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Monitors that fire. With `semantic`, the monitors of the first generation are shown as signals.
    #[arg(long, value_enum, default_value_t)]
    suite: SuiteArg,

    /// Maximum number of runs shown in full; the worst are chosen.
    #[arg(long, value_name = "N", default_value_t = 25)]
    runs_max: usize,

    #[command(flatten)]
    data: DataArgs,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  the page was written
  2  an error: nothing to show, or unreadable input; everything else is in the page

Examples:
  rb report session.jsonl
  rb report ~/.claude/projects/ -o yesterday.html
  rb report run-42 --data-dir /var/lib/reasonblocks -o run-42.html";

pub(crate) fn run(args: &ReportArgs, out: &mut Out) -> Result<Exit> {
    let path = PathBuf::from(&args.what);
    let (page, exit) = if args.what == "-" || path.exists() {
        from_files(args, path, out)?
    } else {
        (from_store(args)?, Exit::Quiet)
    };
    if args.output == Path::new("-") {
        out.plain_result(&page).context("cannot write the page")?;
    } else {
        let shown = args.output.display();
        fs::write(&args.output, page).with_context(|| format!("cannot write {shown}"))?;
        out.note(&format!("written to {shown}"));
    }
    Ok(exit)
}

fn from_files(args: &ReportArgs, path: PathBuf, out: &mut Out) -> Result<(String, Exit)> {
    let config = EngineConfig::with_policy(Policy::of_suite(args.suite.choice()));
    let engine = Arc::new(config.check()?.with_embedder(embedding::builtin()));
    let mut reading = Reading::start(&[path], out)?;
    let mut renderer = Renderer { engine, max_full: args.runs_max.max(1), ..Renderer::default() };
    reading.each(out, |batch, diagnostics, out| {
        renderer.render_batch(batch, diagnostics, out);
        Ok(())
    })?;
    let exit = if reading.diagnostics.any_loss() { Exit::Error } else { Exit::Quiet };
    reading.finish()?;
    if renderer.runs.is_empty() {
        bail!("no run found; `rb check --help` lists the supported formats");
    }
    let count = u64::try_from(renderer.runs.len()).unwrap_or(u64::MAX);
    out.note(&format!("{} read", counted(count, "run")));
    Ok((renderer.page(&args.what), exit))
}

/// List entry of a run, with its full rendering if it is among the worst so far.
struct Rendered {
    listed: Listed,
    body: Option<Markup>,
}

#[derive(Default)]
struct Renderer {
    engine: Arc<Engine>,
    max_full: usize,
    chunks: usize,
    runs: Vec<Rendered>,
    /// Lowest peak among the worst runs once there are `max_full` of them.
    min_peak: f64,
}

impl Renderer {
    fn render_batch(&mut self, batch: &Batch, diagnostics: &mut Diagnostics, out: &mut Out) {
        let first = self.chunks;
        self.chunks += batch.chunks.len();
        let render =
            |(at, chunk): (usize, &Chunk)| self.render_chunk(chunk, batch.bytes(chunk), first + at);
        let rendered: Vec<_> = batch.chunks.par_iter().enumerate().map(render).collect();
        for (chunk, (runs, found)) in batch.chunks.iter().zip(rendered) {
            diagnostics.report_chunk(chunk, &found, out);
            self.runs.extend(runs);
        }
        self.keep_worst();
    }

    fn render_chunk(
        &self,
        chunk: &Chunk,
        bytes: &[u8],
        number: usize,
    ) -> (Vec<Rendered>, Vec<Diagnostic>) {
        let (runs, diagnostics) = (chunk.importer.parse)(bytes);
        let rendered = runs.par_iter().enumerate().map(|(at, run)| {
            let location = chunk.location(at, runs.len());
            let assessed =
                rb_view::from_transcript(run, &location, &chunk.source.name, &self.engine);
            let mut listed = Listed::from(&assessed);
            let scope = format!("r{number}-{at}-");
            let body = (listed.peak >= self.min_peak).then(|| rb_view::run(&assessed, &scope));
            listed.anchor = body.as_ref().map(|_| format!("{scope}run"));
            Rendered { listed, body }
        });
        (rendered.collect(), diagnostics)
    }

    /// Sorts the runs, worst first, and drops the full rendering of all but the first `max_full`.
    fn keep_worst(&mut self) {
        self.runs.sort_by(|a, b| Listed::worst_first(&a.listed, &b.listed));
        for run in self.runs.iter_mut().skip(self.max_full) {
            run.body = None;
            run.listed.anchor = None;
        }
        if let Some(last) = self.runs.get(self.max_full - 1) {
            self.min_peak = last.listed.peak;
        }
    }

    fn page(self, heading: &str) -> String {
        let (listed, bodies): (Vec<_>, Vec<_>) =
            self.runs.into_iter().map(|run| (run.listed, run.body)).unzip();
        let bodies: Vec<Markup> = bodies.into_iter().flatten().collect();
        match (listed.as_slice(), bodies.as_slice()) {
            ([one], [body]) => rb_view::page(&one.title, body),
            (runs, bodies) => rb_view::page(heading, &rb_view::run_list(heading, runs, bodies)),
        }
    }
}

fn from_store(args: &ReportArgs) -> Result<String> {
    let settings = Settings::load(&args.data)?;
    let what = &args.what;
    if !settings.has_database() {
        let dir = settings.data_dir.display();
        bail!("no such file, directory or run: {what}; there are no stored runs in {dir}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = settings.open().await?;
        let Some(run) = find_run(&*store, what).await? else {
            bail!("no such file, directory or run: {what}; `rb runs` lists stored runs");
        };
        let steps = all_steps(&*store, &run.run).await?;
        let view = rb_view::from_store(&run, &steps, StateReplay::default());
        Ok(rb_view::page(&rb_view::title(&view), &rb_view::run(&view, "")))
    })
}
