//! `rb import`: recorded runs into a store, or into a server that has one in use.
//!
//! Into a store, all cores read and judge; then what is not there yet is written, many runs in one commit. A server is
//! sent the transcripts themselves, and does the same.

/// Through a running server.
mod remote;

use std::io;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use rb_server::prices::Prices;
use rb_server::recorded::{Origin, Recorded, Shelf, Tally};
use rb_store::StoreError;
use rb_wire::transcripts::Complaint;
use tokio::runtime::Runtime;

use crate::cli::ImportArgs;
use crate::exit::Exit;
use crate::input::{Batch, Complaints, Piece, Reading};
use crate::out::{BOLD, Out, counted};
use crate::settings::Settings;

pub(crate) fn run(args: &ImportArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (tally, reading) = match &args.url {
        Some(url) => remote::send(args, url, &runtime, out)?,
        None => store(args, runtime, out)?,
    };
    let exit = if reading.complaints.any_loss() { Exit::Error } else { Exit::Quiet };
    if tally.runs > 0 {
        out.result(&in_words(&tally))?;
        out.result(&reading.complaints.in_words())?;
        out.finish()?;
    }
    reading.finish()?;
    if tally.runs == 0 && exit == Exit::Quiet {
        bail!("no run with steps found; `rb check --help` names the formats that are read");
    }
    if tally.runs > 0 && args.url.is_none() {
        out.note("`rb runs` lists them, `rb show` and `rb report` show one, `rb serve` shows all");
    }
    Ok(exit)
}

/// Into the store, with this process alone.
fn store(args: &ImportArgs, runtime: Runtime, out: &mut Out) -> Result<(Tally, Reading)> {
    let settings = Settings::load(&args.data)?;
    let opened = runtime.block_on(settings.open()).with_context(|| in_use(&settings))?;
    let prices = Prices::new(settings.raw.prices.clone());
    let mut reading = Reading::start(&args.paths, out)?;
    let mut desk = Desk { args, prices, runtime, shelf: Shelf::new(opened) };
    let taken = reading.each(out, |batch, complaints, out| desk.batch(batch, complaints, out));
    taken.and_then(|()| desk.flush()).with_context(|| in_use(&settings))?;
    Ok((desk.shelf.tally, reading))
}

/// What may be wrong with a file that cannot be written to.
fn in_use(settings: &Settings) -> String {
    let listen = &settings.raw.listen;
    if settings.database_url().starts_with("sqlite:") {
        format!(
            "cannot write to the store; if a server has it in use, send it the runs with `--url http://{listen}`"
        )
    } else {
        "cannot write to the store".to_owned()
    }
}

/// Where runs come together with the store.
struct Desk<'a> {
    args: &'a ImportArgs,
    prices: Prices,
    runtime: Runtime,
    shelf: Shelf,
}

impl Desk<'_> {
    fn batch(
        &mut self,
        batch: &Batch,
        complaints: &mut Complaints,
        out: &mut Out,
    ) -> io::Result<()> {
        let judge = |piece: &Piece| judge(self.args, &self.prices, piece, batch.bytes(piece));
        let judged: Vec<_> = batch.pieces.par_iter().map(judge).collect();
        for (piece, (runs, said)) in batch.pieces.iter().zip(judged) {
            complaints.of_piece(piece, &said, out);
            for run in runs {
                self.runtime.block_on(self.shelf.keep(run)).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.runtime.block_on(self.shelf.flush()).map_err(failed)
    }
}

/// Reads and judges the runs of a piece; one without steps is `None`. On all cores.
fn judge(
    args: &ImportArgs,
    prices: &Prices,
    piece: &Piece,
    bytes: &[u8],
) -> (Vec<Option<Recorded>>, Vec<Complaint>) {
    let (runs, complaints) = (piece.importer.parse)(bytes);
    let judged = runs.par_iter().enumerate().map(|(at, run)| {
        let origin = Origin {
            org: &args.org,
            project: &args.project,
            format: piece.importer.id,
            file: &piece.source.name,
            place: &piece.name(at, runs.len()),
        };
        Recorded::judge(run, &origin, prices)
    });
    (judged.collect(), complaints)
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

/// What was done, for people.
fn in_words(tally: &Tally) -> String {
    let parts = [
        (tally.new_runs, format!("{} new", tally.new_runs)),
        (
            tally.grown_runs,
            format!("{} updated ({})", tally.grown_runs, counted(tally.grown_steps, "step")),
        ),
        (tally.same_runs, format!("{} as before", tally.same_runs)),
        (tally.empty_runs, format!("{} without steps left out", tally.empty_runs)),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
    format!(
        "{BOLD}{}{BOLD:#}, {}: {}; something fired in {}\n",
        counted(tally.runs, "run"),
        counted(tally.steps, "step"),
        parts.join(", "),
        tally.fired_runs,
    )
}
