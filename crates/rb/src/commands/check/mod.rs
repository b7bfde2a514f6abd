//! `rb check`: assesses recorded runs and prints where monitors fired.
//!
//! One thread reads, all cores assess and format, the main thread prints in the order of the input.

/// Assessment of one run by the engine.
mod assess;
/// JSON output.
mod json;
/// Text output of one run.
mod sparkline;
/// Totals.
mod summary;

use std::io;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use rayon::prelude::*;
use rb_engine::config::weights::{Profile, WeightNote, Weights};
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::monitors::ALL;
use rb_engine::policy::Policy;
use rb_wire::model::Run;
use rb_wire::transcripts::{Diagnostic, IMPORTERS};

use self::assess::assess;
use self::summary::Summary;
use crate::engine_args::{EmbeddingArgs, SuiteArg};
use crate::exit::Exit;
use crate::input::{Batch, Chunk, Diagnostics, Reading};
use crate::ui::{BOLD, Out, escape_control, wrapped};

const FORMATS_WIDTH: usize = 96;

/// Assesses recorded runs and shows where a monitor fired, and why.
///
/// Reads the transcripts of coding agents, tracing tools and benchmarks: Claude Code, Codex, Gemini CLI, SWE-agent,
/// OpenTelemetry, Langfuse, plain message lists and more (see the list of formats below). The format is detected from
/// the content, not from the file name. Files may be compressed with gzip, incomplete or damaged: everything readable
/// is checked and the rest is reported.
#[derive(Debug, Args)]
#[command(after_long_help = after_help())]
pub(crate) struct CheckArgs {
    /// Files, directories or `-` for standard input. In a directory, all `.jsonl`, `.ndjson`, `.json`, `.traj` and
    /// `.log` files that are transcripts are read in the order of their names, including compressed ones (`.gz`).
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Monitors that fire. With `semantic`, the monitors of the first generation are shown as signals.
    #[arg(long, value_enum, default_value_t)]
    suite: SuiteArg,

    /// Weights of the composite score.
    #[arg(long, value_name = "NAME", default_value = Profile::default().name(),
          value_parser = PossibleValuesParser::new(Profile::ALL.map(Profile::name)))]
    profile: String,

    /// Override the weight of a monitor, between 0 and 1; can be repeated.
    #[arg(long = "weight", value_name = "NAME=X", value_parser = weight)]
    weights: Vec<(String, f64)>,

    #[command(flatten)]
    embedding: EmbeddingArgs,

    /// Show only runs in which a monitor fired.
    #[arg(long)]
    only_fired: bool,

    /// Write one JSON object per run and line.
    #[arg(long)]
    json: bool,
}

/// Returns the end of the long help, with the formats of the importer table.
fn after_help() -> String {
    let mut formats = IMPORTERS.map(|importer| importer.id);
    formats.sort_unstable();
    let formats = wrapped(&formats.join(", "), FORMATS_WIDTH).join("\n  ");
    format!("Formats (details: docs/transcripts.md):\n  {formats}\n\n{AFTER_HELP}")
}

const AFTER_HELP: &str = "\
One line of the native format (`runs`), shown here with line breaks; only `steps` is required:
  {\"run_id\": \"r1\", \"outcome\": \"failure\", \"steps\": [
    {\"thought\": \"Let me look.\", \"action\": \"bash\", \"action_input\": \"ls\",
     \"observation\": \"a.rs\", \"is_error\": false}, …]}

One line of output with --json, shown here with line breaks:
  {\"run_id\": \"r1\", \"outcome\": \"failure\", \"fires\": […], \"steps\": [
    {\"step_index\": 0, \"difficulty\": 0.05, \"fsm_state\": \"NORMAL\",
     \"scores\": {\"streak\": 0.0, …}, \"composite\": 0.0075, \"fired\": [], \"signals\": []}, …], …}
  `difficulty` is null for steps without a thought; `signals` are monitors that are only recorded.

Exit codes:
  0  no monitor fired
  1  a monitor fired in at least one run
  2  an error: unreadable path, bad line or no run at all; everything else was checked

Examples:
  rb check runs.jsonl
  rb check ~/.claude/projects/ --only-fired
  rb check transcripts/ --suite heuristic --profile qa --weight streak=0.1
  zcat runs.jsonl.gz | rb check - --json | jq 'select(.fires != []) | .run_id'";

fn weight(text: &str) -> Result<(String, f64), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| "expected NAME=X, for example streak=0.5".to_owned())?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("`{value}` is not a number; for example {name}=0.5"))?;
    Ok((name.trim().to_owned(), value))
}

/// Identity of a run in the output.
#[derive(Debug, Clone, Copy)]
struct Subject<'a> {
    run_id: &'a str,
    file: &'a str,
    line: u64,
    outcome: Option<&'a str>,
}

/// Output options.
#[derive(Debug, Clone, Copy)]
struct Format {
    json: bool,
    only_fired: bool,
    width: usize,
}

/// Output of one or more runs.
#[derive(Debug, Default)]
struct Page {
    text: String,
    diagnostics: Vec<Diagnostic>,
    /// Failures of monitors and of the JSON output.
    errors: Vec<String>,
    summary: Summary,
}

pub(crate) fn run(args: &CheckArgs, out: &mut Out) -> anyhow::Result<Exit> {
    let engine = engine(args, out)?;
    let format = Format { json: args.json, only_fired: args.only_fired, width: Out::width() };
    let mut reading = Reading::start(&args.paths, out)?;
    let mut printer = CheckPrinter::new(format, reading.files > 1);
    reading.each(out, |batch, diagnostics, out| {
        printer.print_batch(batch, &engine, diagnostics, out)
    })?;
    printer.finish(&reading.diagnostics, out)?;
    let exit = match reading.diagnostics.any_loss() {
        true => Exit::Error,
        false if printer.summary.fired_runs > 0 => Exit::Fired,
        false => Exit::Quiet,
    };
    reading.finish()?;
    if printer.summary.runs == 0 && exit == Exit::Quiet {
        anyhow::bail!("no run found; `rb check --help` lists the supported formats");
    }
    Ok(exit)
}

fn engine(args: &CheckArgs, out: &mut Out) -> anyhow::Result<Engine> {
    let profile = Profile::from_name(&args.profile).unwrap_or_default();
    let overrides = args.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
    let (weights, notes) = Weights::of(profile).with(overrides);
    for note in notes {
        let hint = match note {
            WeightNote::Unknown { .. } => {
                format!(" (monitors: {})", ALL.map(|spec| spec.id).join(", "))
            }
            WeightNote::Clamped { .. } | WeightNote::NotANumber { .. } => String::new(),
        };
        out.warning(&format!("--weight: {note}{hint}"));
    }
    let policy = Policy::of_suite(args.suite.choice());
    let config = EngineConfig { policy, weights, ..EngineConfig::default() };
    Ok(config.check()?.with_embedder(args.embedding.embedder()?))
}

/// Assesses and formats the runs of a chunk, in parallel.
fn page(chunk: &Chunk, bytes: &[u8], engine: &Engine, format: Format) -> Page {
    let (runs, diagnostics) = (chunk.importer.parse)(bytes);
    let one = |(at, run): (usize, &Run<'_>)| {
        run_page(run, &chunk.location(at, runs.len()), chunk, engine, format)
    };
    let pages: Vec<Page> = runs.par_iter().enumerate().map(one).collect();
    pages.into_iter().fold(Page { diagnostics, ..Page::default() }, Page::append)
}

fn run_page(run: &Run<'_>, location: &str, chunk: &Chunk, engine: &Engine, format: Format) -> Page {
    let verdict = assess(run, engine);
    let subject = Subject {
        run_id: run.run_id.as_deref().unwrap_or(location),
        file: &chunk.source.name,
        line: chunk.number,
        outcome: run.outcome.as_deref(),
    };
    let mut page = Page { summary: Summary::of(&verdict), ..Page::default() };
    for monitor in &verdict.disabled {
        page.errors.push(format!("{location}: the monitor `{}` failed", monitor.id));
    }
    if format.only_fired && verdict.fires.is_empty() {
        return page;
    }
    if !format.json {
        page.text = sparkline::page(&subject, &verdict, format.width);
        return page;
    }
    match json::line(&subject, &verdict) {
        Ok(json) => page.text = json,
        Err(error) => page.errors.push(format!("{location}: cannot be written as JSON: {error}")),
    }
    page
}

impl Page {
    fn append(mut self, next: Self) -> Self {
        if self.text.is_empty() {
            self.text = next.text;
        } else {
            self.text.push_str(&next.text);
        }
        self.diagnostics.extend(next.diagnostics);
        self.errors.extend(next.errors);
        self.summary.add(&next.summary);
        self
    }
}

/// Prints pages in the order of the input.
struct CheckPrinter {
    format: Format,
    /// Prints a heading per file.
    headings: bool,
    summary: Summary,
    file: String,
    heading_printed: bool,
}

impl CheckPrinter {
    fn new(format: Format, headings: bool) -> Self {
        Self {
            format,
            headings: headings && !format.json,
            summary: Summary::default(),
            file: String::new(),
            heading_printed: false,
        }
    }

    fn print_batch(
        &mut self,
        batch: &Batch,
        engine: &Engine,
        diagnostics: &mut Diagnostics,
        out: &mut Out,
    ) -> io::Result<()> {
        let format = self.format;
        let pages = batch.chunks.par_iter();
        let pages: Vec<Page> =
            pages.map(|chunk| page(chunk, batch.bytes(chunk), engine, format)).collect();
        for (chunk, page) in batch.chunks.iter().zip(pages) {
            diagnostics.report_chunk(chunk, &page.diagnostics, out);
            for message in &page.errors {
                diagnostics.bad_line(message, out);
            }
            self.print_page(chunk, &page, out)?;
        }
        Ok(())
    }

    fn print_page(&mut self, chunk: &Chunk, page: &Page, out: &mut Out) -> io::Result<()> {
        if self.file != chunk.source.name {
            self.file.clone_from(&chunk.source.name);
            self.heading_printed = false;
        }
        self.summary.add(&page.summary);
        if page.text.is_empty() {
            return Ok(());
        }
        if self.format.json {
            return out.plain_result(&page.text);
        }
        if self.headings && !self.heading_printed {
            self.heading_printed = true;
            out.result(&format!("{BOLD}{}{BOLD:#}\n", escape_control(&self.file)))?;
        }
        out.result(&page.text)
    }

    fn finish(&mut self, diagnostics: &Diagnostics, out: &mut Out) -> io::Result<()> {
        if !self.format.json && self.summary.runs > 0 {
            if self.summary.fired_runs > 0 {
                out.result(&sparkline::legend(out.is_colored()))?;
            }
            out.result(&self.summary.text())?;
            out.result(&diagnostics.summary())?;
        }
        out.finish()
    }
}
