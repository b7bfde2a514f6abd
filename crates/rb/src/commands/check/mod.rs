//! `rb check`: where did recorded runs go astray?
//!
//! One thread reads, all cores judge and format, this one prints in the order of the input.

/// For programs.
mod json;
/// What the engine says.
mod judge;
/// For people.
mod strip;
/// The total.
mod tally;

use std::io;

use rayon::prelude::*;
use rb_engine::config::weights::{Profile, WeightNote, Weights};
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::monitors::ALL;
use rb_wire::transcripts::{Complaint, Run};

use self::tally::Tally;
use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::input::{Batch, Complaints, Piece, Reading};
use crate::out::{BOLD, Out, harmless};

/// A run and where it stands.
#[derive(Debug, Clone, Copy)]
struct Subject<'a> {
    run_id: &'a str,
    file: &'a str,
    line: u64,
    outcome: Option<&'a str>,
}

/// How runs are shown.
#[derive(Debug, Clone, Copy)]
struct View {
    json: bool,
    only_fired: bool,
    width: usize,
}

/// What one piece came to.
#[derive(Debug, Default)]
struct Page {
    text: String,
    complaints: Vec<Complaint>,
    retired: Vec<String>,
    tally: Tally,
}

pub(crate) fn run(args: &CheckArgs, out: &mut Out) -> anyhow::Result<Exit> {
    let rules = rules(args, out)?;
    let view = View { json: args.json, only_fired: args.only_fired, width: Out::width() };
    let mut reading = Reading::start(&args.paths, out)?;
    let mut desk = Desk::new(view, reading.files > 1);
    let shown =
        reading.each(out, |batch, complaints, out| desk.batch(batch, &rules, complaints, out));
    let shown = shown.and_then(|()| desk.finish(&reading.complaints, out));
    let exit = match reading.complaints.any_loss() {
        true => Exit::Error,
        false if desk.tally.fired_runs > 0 => Exit::Fired,
        false => Exit::Quiet,
    };
    match shown {
        Ok(()) => {}
        // Whoever read along has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(exit),
        Err(error) => return Err(anyhow::Error::new(error).context("cannot write the result")),
    }
    reading.finish()?;
    if desk.tally.runs == 0 && exit == Exit::Quiet {
        anyhow::bail!("no run found; `rb check --help` names the formats that are read");
    }
    Ok(exit)
}

fn rules(args: &CheckArgs, out: &mut Out) -> anyhow::Result<Engine> {
    let suite = args.suite.choice();
    let profile = Profile::from_name(&args.profile).unwrap_or_default();
    let given = args.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
    let (weights, notes) = Weights::of(profile).with(given);
    for note in notes {
        let hint = match note {
            WeightNote::Unknown { .. } => {
                format!(" (there are {})", ALL.map(|spec| spec.id).join(", "))
            }
            WeightNote::Clamped { .. } | WeightNote::NotANumber { .. } => String::new(),
        };
        out.warning(&format!("--weight: {note}{hint}"));
    }
    let config = EngineConfig { suite, weights, ..EngineConfig::default() };
    Ok(config.check()?.with_embedder(args.meaning.embedder()?))
}

/// Judges one piece and writes its page. Runs on all cores.
fn page(piece: &Piece, bytes: &[u8], rules: &Engine, view: View) -> Page {
    let (runs, complaints) = (piece.importer.parse)(bytes);
    let judge = |(at, run): (usize, &Run<'_>)| {
        let mut page = Page::default();
        page.judge(run, &piece.place(at, runs.len()), piece, rules, view);
        page
    };
    let pages: Vec<Page> = runs.par_iter().enumerate().map(judge).collect();
    let whole = Page { complaints, ..Page::default() };
    pages.into_iter().fold(whole, Page::and)
}

impl Page {
    /// Both, behind each other.
    fn and(mut self, next: Self) -> Self {
        if self.text.is_empty() {
            self.text = next.text;
        } else {
            self.text.push_str(&next.text);
        }
        self.complaints.extend(next.complaints);
        self.retired.extend(next.retired);
        self.tally.add(&next.tally);
        self
    }

    fn judge(&mut self, run: &Run<'_>, place: &str, piece: &Piece, rules: &Engine, view: View) {
        let verdict = judge::judge(run, rules);
        let subject = Subject {
            run_id: run.run_id.as_deref().unwrap_or(place),
            file: &piece.source.name,
            line: piece.number,
            outcome: run.outcome.as_deref(),
        };
        for monitor in &verdict.retired {
            self.retired.push(format!("{place}: the monitor `{}` broke down", monitor.id));
        }
        self.tally.add(&Tally::of(&verdict));
        if view.only_fired && verdict.fires.is_empty() {
            return;
        }
        if !view.json {
            self.text.push_str(&strip::page(&subject, &verdict, view.width));
            return;
        }
        match json::line(&subject, &verdict) {
            Ok(json) => self.text.push_str(&json),
            Err(error) => self.retired.push(format!("{place}: cannot be written as JSON: {error}")),
        }
    }
}

/// Where everything comes together, in the order of the input.
struct Desk {
    view: View,
    /// Several files: each gets a heading.
    headings: bool,
    tally: Tally,
    file: String,
    file_is_headed: bool,
}

impl Desk {
    fn new(view: View, headings: bool) -> Self {
        Self {
            view,
            headings: headings && !view.json,
            tally: Tally::default(),
            file: String::new(),
            file_is_headed: false,
        }
    }

    fn batch(
        &mut self,
        batch: &Batch,
        rules: &Engine,
        complaints: &mut Complaints,
        out: &mut Out,
    ) -> io::Result<()> {
        let view = self.view;
        let judge = |piece: &Piece| page(piece, batch.bytes(piece), rules, view);
        let pages: Vec<Page> = batch.pieces.par_iter().map(judge).collect();
        for (piece, page) in batch.pieces.iter().zip(pages) {
            complaints.of_piece(piece, &page.complaints, out);
            for message in &page.retired {
                complaints.line(message, out);
            }
            self.page(piece, &page, out)?;
        }
        Ok(())
    }

    fn page(&mut self, piece: &Piece, page: &Page, out: &mut Out) -> io::Result<()> {
        if self.file != piece.source.name {
            self.file.clone_from(&piece.source.name);
            self.file_is_headed = false;
        }
        self.tally.add(&page.tally);
        if page.text.is_empty() {
            return Ok(());
        }
        if self.view.json {
            return out.plain_result(&page.text);
        }
        if self.headings && !self.file_is_headed {
            self.file_is_headed = true;
            out.result(&format!("{BOLD}{}{BOLD:#}\n", harmless(&self.file)))?;
        }
        out.result(&page.text)
    }

    fn finish(&mut self, complaints: &Complaints, out: &mut Out) -> io::Result<()> {
        if !self.view.json && self.tally.runs > 0 {
            if self.tally.fired_runs > 0 {
                out.result(&strip::legend(out.is_colored()))?;
            }
            out.result(&self.tally.in_words())?;
            out.result(&complaints.in_words())?;
        }
        out.finish()
    }
}
