//! `rb quality`: measures the monitors on labelled runs.

/// Arguments.
mod args;
/// Labelled runs.
mod corpus;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use rb_engine::config::EngineConfig;
use rb_quality::corpus::Split;
use rb_quality::judge::{Judge, StepCount, SuiteJudge, Watch};
use rb_quality::measure::{Options, measure};
use rb_quality::report::table::{Detail, Tone, table};
use rb_quality::report::{Report, html, json, per_monitor};
use rb_quality::splice::{Spliced, splice_all};

pub(crate) use self::args::QualityArgs;
use self::corpus::Corpus;
use crate::engine_args::SuiteArg;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, GREEN, Out, RED, Work, counted, escape_control, short};

pub(crate) fn run(args: &QualityArgs, out: &mut Out) -> anyhow::Result<Exit> {
    let (corpus, lost) = corpus::read(&args.paths, out)?;
    ensure_measurable(&corpus, args, lost)?;
    let options = Options {
        seed: args.seed,
        steps_min: args.steps_min,
        plants_max: if args.no_faults { 0 } else { args.show_faults.unwrap_or(args.faults) },
        false_alarms_max: args.alarms,
        shown: if args.show_held_out { Split::All } else { Split::Dev },
        ..Options::default()
    };
    if args.show_faults.is_some() {
        shown(out.result(&faults(&corpus, &options)?))?;
        shown(out.finish())?;
        return Ok(if lost { Exit::Error } else { Exit::Quiet });
    }
    let report = report(&corpus, args, &options)?;
    if let Some(path) = &args.html {
        fs::write(path, html::html(&report))
            .with_context(|| format!("cannot write the page to {}", path.display()))?;
    }
    if let Some(path) = &args.figures {
        let text = per_monitor::json(&report).context("cannot write the figures as JSON")? + "\n";
        fs::write(path, text)
            .with_context(|| format!("cannot write the figures to {}", path.display()))?;
    }
    if args.json {
        let text = json::json(&report).context("cannot write the report as JSON")? + "\n";
        shown(out.plain_result(&text))?;
    } else {
        let detail = if args.full { Detail::Full } else { Detail::Short };
        shown(out.result(&table(&report, detail, &paint)))?;
    }
    shown(out.finish())?;
    let missed = |split| report.verdicts.iter().any(|v| v.split == split && v.met == Some(false));
    Ok(match args.check {
        _ if lost => Exit::Error,
        Some(part) if missed(part.split()) => Exit::Missed,
        Some(_) | None => Exit::Quiet,
    })
}

/// Fails if no run can be measured.
fn ensure_measurable(corpus: &Corpus, args: &QualityArgs, lost: bool) -> anyhow::Result<()> {
    let runs = &corpus.runs;
    let see = "see `rb quality --help`";
    if runs.is_empty() {
        let empty = corpus.empty_runs;
        anyhow::ensure!(empty == 0, "no run has a step ({} without any)", counted(empty, "run"));
        anyhow::ensure!(!lost, "no input could be read");
        anyhow::bail!("no run found; `rb check --help` lists the formats ({see})");
    }
    let count = counted(runs.len(), "run");
    anyhow::ensure!(
        runs.iter().any(|run| run.steps.len() >= args.steps_min),
        "no run has {} or more steps ({count} read); include shorter ones with `--steps-min`",
        args.steps_min
    );
    anyhow::ensure!(
        runs.iter().any(|run| run.outcome.is_some() || !run.labelled_steps.is_empty()),
        "{count} without outcome and labels; add an `outcome` (\"success\" or \"failure\") or labels ({see})"
    );
    Ok(())
}

struct Bar(Work);

impl Watch for Bar {
    fn planned(&self, steps: usize) {
        self.0.planned(steps);
    }

    fn judged(&self, steps: usize) {
        self.0.done(steps);
    }
}

/// Measures the selected suite first, then its baselines.
fn report(corpus: &Corpus, args: &QualityArgs, options: &Options) -> anyhow::Result<Report> {
    let embedder = args.embedding.embedder()?;
    let judge = |suite: SuiteArg| -> anyhow::Result<SuiteJudge> {
        let rules = EngineConfig { suite: suite.choice(), ..EngineConfig::default() }.check()?;
        Ok(SuiteJudge::new(rules.with_embedder(Arc::clone(&embedder))))
    };
    let (selected, heuristic) = (judge(args.suite)?, judge(SuiteArg::Heuristic)?);
    let judges: Vec<&dyn Judge> = match args.suite {
        SuiteArg::Heuristic => vec![&selected, &StepCount],
        SuiteArg::Semantic | SuiteArg::Both => vec![&selected, &heuristic, &StepCount],
    };
    let bar = Bar(Out::work("steps assessed"));
    Ok(measure(&corpus.runs, &judges, options, &bar))
}

/// Escapes and colours a text; names of sets come from the input.
fn paint(tone: Tone, text: &str) -> String {
    let text = escape_control(text);
    match tone {
        Tone::Plain => text.into_owned(),
        Tone::Title => format!("{BOLD}{text}{BOLD:#}"),
        Tone::Quiet => format!("{DIM}{text}{DIM:#}"),
        Tone::Good => format!("{GREEN}{text}{GREEN:#}"),
        Tone::Bad => format!("{RED}{text}{RED:#}"),
    }
}

/// Maximum number of steps printed per fault.
const MAX_FAULT_STEPS: usize = 7;

/// Formats injected faults: three lines per step, from the first changed one.
fn faults(corpus: &Corpus, options: &Options) -> anyhow::Result<String> {
    let faults = splice_all(&corpus.runs, options.plants_max, options.seed);
    let width = Out::width().saturating_sub(6);
    let mut text = String::new();
    for fault in faults.iter().filter(|fault| options.shown.holds(&fault.run)) {
        let Spliced { run, kind, variant, start, changed_from } = fault;
        let name = escape_control(&run.id);
        let set = escape_control(&run.set);
        writeln!(
            text,
            "{BOLD}{} ({variant}){BOLD:#} at step {start} of {}: {set} {name}",
            kind.plural(),
            run.steps.len()
        )?;
        let shown = run.steps.iter().enumerate().skip(*changed_from).take(MAX_FAULT_STEPS);
        for (at, step) in shown {
            let action = format!("{} {}", step.tool, step.input);
            writeln!(text, "{at:>3}   {}", short(step.thought.trim(), width))?;
            writeln!(text, "    {DIM}>{DIM:#} {}", short(action.trim(), width))?;
            writeln!(text, "    {DIM}<{DIM:#} {}", short(step.observation.trim(), width))?;
        }
        text.push('\n');
    }
    anyhow::ensure!(
        !text.is_empty(),
        "no fault could be injected; it needs longer successful runs (see `rb quality --help`)"
    );
    Ok(text)
}

fn shown(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        // The reader of a pipe may stop early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the result"),
    }
}
