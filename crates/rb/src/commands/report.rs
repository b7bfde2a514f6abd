//! `rb report`: runs as one page to read.
//!
//! Transcripts are judged as in `rb check`. Of many runs only the worst are drawn in full, and only they are kept, so
//! memory does not depend on how much there is to read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use rb_engine::config::{Engine, EngineConfig};
use rb_server::seconded;
use rb_store::{RunKey, Scope, StepRow, Store};
use rb_view::{Listed, Markup, StateReplay};
use rb_wire::transcripts::Complaint;

use crate::cli::ReportArgs;
use crate::exit::Exit;
use crate::input::{Batch, Complaints, Piece, Reading};
use crate::out::{Out, counted};
use crate::settings::Settings;

/// Steps read from the store at once.
const PAGE_STEPS: u32 = 1_000;

pub(crate) fn run(args: &ReportArgs, out: &mut Out) -> Result<Exit> {
    let path = PathBuf::from(&args.what);
    let (page, exit) = if args.what == "-" || path.exists() {
        recorded(args, path, out)?
    } else {
        (stored(args)?, Exit::Quiet)
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

/// The page of what a path holds.
fn recorded(args: &ReportArgs, path: PathBuf, out: &mut Out) -> Result<(String, Exit)> {
    let config = EngineConfig { suite: args.suite.choice(), ..EngineConfig::default() };
    let rules = Arc::new(config.check()?.with_embedder(seconded::packed()));
    let mut reading = Reading::start(&[path], out)?;
    let mut shelf = Shelf { rules, full_max: args.runs_max.max(1), ..Shelf::default() };
    let taken = reading.each(out, |batch, complaints, out| {
        shelf.batch(batch, complaints, out);
        Ok(())
    });
    taken.context("cannot read on")?;
    let exit = if reading.complaints.any_loss() { Exit::Error } else { Exit::Quiet };
    reading.finish()?;
    if shelf.runs.is_empty() {
        bail!("no run found; `rb check --help` names the formats that are read");
    }
    let count = u64::try_from(shelf.runs.len()).unwrap_or(u64::MAX);
    out.note(&format!("{} read", counted(count, "run")));
    Ok((shelf.page(&args.what), exit))
}

/// One run, in numbers and, if it is among the worst so far, in full.
struct Drawn {
    listed: Listed,
    body: Option<Markup>,
}

/// The runs so far.
#[derive(Default)]
struct Shelf {
    rules: Arc<Engine>,
    full_max: usize,
    pieces: usize,
    runs: Vec<Drawn>,
    /// A run below this peak is not among the worst.
    peak_min: f64,
}

impl Shelf {
    fn batch(&mut self, batch: &Batch, complaints: &mut Complaints, out: &mut Out) {
        let first = self.pieces;
        self.pieces += batch.pieces.len();
        let draw = |(at, piece): (usize, &Piece)| self.piece(piece, batch.bytes(piece), first + at);
        let drawn: Vec<_> = batch.pieces.par_iter().enumerate().map(draw).collect();
        for (piece, (runs, said)) in batch.pieces.iter().zip(drawn) {
            complaints.of_piece(piece, &said, out);
            self.runs.extend(runs);
        }
        self.keep_the_worst();
    }

    /// Judges and draws the runs of a piece. On all cores.
    fn piece(&self, piece: &Piece, bytes: &[u8], number: usize) -> (Vec<Drawn>, Vec<Complaint>) {
        let (runs, complaints) = (piece.importer.parse)(bytes);
        let drawn = runs.par_iter().enumerate().map(|(at, run)| {
            let place = piece.place(at, runs.len());
            let view = rb_view::from_transcript(run, &place, &piece.source.name, &self.rules);
            let mut listed = Listed::from(&view);
            let scope = format!("r{number}-{at}-");
            let body = (listed.peak >= self.peak_min).then(|| rb_view::run(&view, &scope));
            listed.anchor = body.as_ref().map(|_| format!("{scope}run"));
            Drawn { listed, body }
        });
        (drawn.collect(), complaints)
    }

    /// Sorts the runs, the worst first, and lets go of the pages of the others.
    fn keep_the_worst(&mut self) {
        self.runs.sort_by(|a, b| Listed::worst_first(&a.listed, &b.listed));
        for run in self.runs.iter_mut().skip(self.full_max) {
            run.body = None;
            run.listed.anchor = None;
        }
        if let Some(last) = self.runs.get(self.full_max - 1) {
            self.peak_min = last.listed.peak;
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

/// The page of a run in the store.
fn stored(args: &ReportArgs) -> Result<String> {
    let settings = Settings::load(&args.data)?;
    if settings.raw.database_url.is_empty() && !settings.database_file().exists() {
        let folder = settings.data_dir.display();
        bail!("`{}` is neither a file nor a folder, and {folder} holds no runs", args.what);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = settings.open().await?;
        let Some(run) = store.run(&Scope::default(), &args.what).await? else {
            bail!(
                "`{}` is neither a file nor a folder nor a stored run; `rb runs` lists those",
                args.what
            );
        };
        let steps = all_steps(&*store, &run.run).await?;
        let view = rb_view::from_store(&run, &steps, StateReplay::default());
        Ok(rb_view::page(&rb_view::title(&view), &rb_view::run(&view, "")))
    })
}

/// The steps of a stored run, all of them.
pub(super) async fn all_steps(store: &dyn Store, run: &RunKey) -> Result<Vec<StepRow>> {
    let mut steps: Vec<StepRow> = Vec::new();
    loop {
        let from = steps.last().map_or(0, |step| step.step_index.saturating_add(1));
        let page = store.steps(run, from, PAGE_STEPS).await?;
        let is_last = page.len() < PAGE_STEPS as usize;
        steps.extend(page);
        if is_last {
            return Ok(steps);
        }
    }
}
