//! `rb import`: recorded runs into the store.
//!
//! All cores read and judge; then what the store does not have yet is written, many runs in one commit.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use rb_server::prices::Prices;
use rb_server::recorded::{Kept, Origin, Recorded, plan};
use rb_store::{Change, RunKey, Store, StoreError};
use rb_wire::transcripts::Complaint;
use tokio::runtime::Runtime;

use crate::cli::ImportArgs;
use crate::exit::Exit;
use crate::input::{Batch, Complaints, Piece, Reading};
use crate::out::{BOLD, Out, counted};
use crate::settings::Settings;

/// Changes that are written together.
const CHANGES_AT_ONCE: usize = 2_000;

pub(crate) fn run(args: &ImportArgs, out: &mut Out) -> Result<Exit> {
    let settings = Settings::load(&args.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let store = runtime.block_on(settings.open())?;
    let prices = Prices::new(settings.raw.prices.clone());
    let mut reading = Reading::start(&args.paths, out)?;
    let mut desk =
        Desk { args, prices, writer: Writer::new(runtime, store), tally: Tally::default() };
    let taken = reading.each(out, |batch, complaints, out| desk.batch(batch, complaints, out));
    taken.and_then(|()| desk.writer.flush()).context("cannot write to the store")?;
    let exit = if reading.complaints.any_loss() { Exit::Error } else { Exit::Quiet };
    if desk.tally.runs > 0 {
        out.result(&desk.tally.in_words())?;
        out.result(&reading.complaints.in_words())?;
        out.finish()?;
    }
    reading.finish()?;
    if desk.tally.runs == 0 && exit == Exit::Quiet {
        bail!("no run with steps found; `rb check --help` names the formats that are read");
    }
    if desk.tally.runs > 0 {
        out.note("`rb runs` lists them, `rb show` and `rb report` show one, `rb serve` shows all");
    }
    Ok(exit)
}

/// Where runs come together with the store.
struct Desk<'a> {
    args: &'a ImportArgs,
    prices: Prices,
    writer: Writer,
    tally: Tally,
}

impl Desk<'_> {
    fn batch(
        &mut self,
        batch: &Batch,
        complaints: &mut Complaints,
        out: &mut Out,
    ) -> io::Result<()> {
        let judge = |piece: &Piece| self.judge(piece, batch.bytes(piece));
        let judged: Vec<_> = batch.pieces.par_iter().map(judge).collect();
        for (piece, (runs, said)) in batch.pieces.iter().zip(judged) {
            complaints.of_piece(piece, &said, out);
            for run in runs {
                match run {
                    None => self.tally.empty_runs += 1,
                    Some(run) => self.keep(run)?,
                }
            }
        }
        Ok(())
    }

    /// Reads and judges the runs of a piece; one without steps is `None`. On all cores.
    fn judge(&self, piece: &Piece, bytes: &[u8]) -> (Vec<Option<Recorded>>, Vec<Complaint>) {
        let (runs, complaints) = (piece.importer.parse)(bytes);
        let judged = runs.par_iter().enumerate().map(|(at, run)| {
            let origin = Origin {
                org: &self.args.org,
                project: &self.args.project,
                format: piece.importer.id,
                file: &piece.source.name,
                place: &piece.name(at, runs.len()),
            };
            Recorded::judge(run, &origin, &self.prices)
        });
        (judged.collect(), complaints)
    }

    fn keep(&mut self, run: Recorded) -> io::Result<()> {
        let (steps, has_fired) = (run.step_count(), run.fired().next().is_some());
        let kept = self.writer.keep(run)?;
        self.tally.add(kept, steps, has_fired);
        Ok(())
    }
}

/// The way into the store.
struct Writer {
    runtime: Runtime,
    store: Arc<dyn Store>,
    changes: Vec<Change>,
    /// The runs that these are about.
    waiting: BTreeSet<RunKey>,
}

impl Writer {
    fn new(runtime: Runtime, store: Arc<dyn Store>) -> Self {
        Self { runtime, store, changes: Vec::new(), waiting: BTreeSet::new() }
    }

    fn keep(&mut self, run: Recorded) -> io::Result<Kept> {
        // What is compared must be stored.
        if self.waiting.iter().any(|waiting| run.may_be(waiting)) {
            self.flush()?;
        }
        let planned = self.runtime.block_on(plan(&*self.store, run)).map_err(failed)?;
        self.changes.extend(planned.changes);
        self.waiting.insert(planned.run);
        if self.changes.len() >= CHANGES_AT_ONCE {
            self.flush()?;
        }
        Ok(planned.kept)
    }

    fn flush(&mut self) -> io::Result<()> {
        let changes = std::mem::take(&mut self.changes);
        self.waiting.clear();
        if !changes.is_empty() {
            self.runtime.block_on(self.store.apply(changes)).map_err(failed)?;
        }
        Ok(())
    }
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

/// What was done.
#[derive(Debug, Default)]
struct Tally {
    runs: u64,
    steps: u64,
    fired_runs: u64,
    new_runs: u64,
    grown_runs: u64,
    grown_steps: u64,
    same_runs: u64,
    /// Left out, as there is nothing to look at.
    empty_runs: u64,
}

impl Tally {
    fn add(&mut self, kept: Kept, steps: usize, has_fired: bool) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.runs += 1;
        self.steps += count(steps);
        self.fired_runs += u64::from(has_fired);
        match kept {
            Kept::New => self.new_runs += 1,
            Kept::Grown { steps } => {
                self.grown_runs += 1;
                self.grown_steps += count(steps);
            }
            Kept::Same => self.same_runs += 1,
        }
    }

    /// For people.
    fn in_words(&self) -> String {
        let parts = [
            (self.new_runs, format!("{} new", self.new_runs)),
            (
                self.grown_runs,
                format!("{} updated ({})", self.grown_runs, counted(self.grown_steps, "step")),
            ),
            (self.same_runs, format!("{} as before", self.same_runs)),
            (self.empty_runs, format!("{} without steps left out", self.empty_runs)),
        ];
        let parts: Vec<String> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        format!(
            "{BOLD}{}{BOLD:#}, {}: {}; something fired in {}\n",
            counted(self.runs, "run"),
            counted(self.steps, "step"),
            parts.join(", "),
            self.fired_runs,
        )
    }
}
