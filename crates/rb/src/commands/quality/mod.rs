//! `rb quality`: how good are the monitors on runs whose outcome is known?
//!
//! Reads everything, hands it to the measuring room and shows what comes back.

/// Arguments.
mod args;
/// From recorded runs to labelled ones.
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
        plants_max: if args.no_plants { 0 } else { args.show_plants.unwrap_or(args.plants) },
        false_alarms_max: args.alarms,
        shown: if args.show_held_out { Split::All } else { Split::Dev },
        ..Options::default()
    };
    if args.show_plants.is_some() {
        shown(out.result(&plants(&corpus, &options)?))?;
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

/// Says why there is nothing to measure, if there is not.
fn ensure_measurable(corpus: &Corpus, args: &QualityArgs, lost: bool) -> anyhow::Result<()> {
    let runs = &corpus.runs;
    let see = "see `rb quality --help`";
    if runs.is_empty() {
        let empty = corpus.empty_runs;
        anyhow::ensure!(empty == 0, "no run has a step ({} without any)", counted(empty, "run"));
        anyhow::ensure!(!lost, "nothing could be read, so there is nothing to measure");
        anyhow::bail!("no run found; `rb check --help` names the formats that are read ({see})");
    }
    let count = counted(u64::try_from(runs.len()).unwrap_or(u64::MAX), "run");
    anyhow::ensure!(
        runs.iter().any(|run| run.steps.len() >= args.steps_min),
        "no run has {} steps or more ({count} read); take shorter ones with `--steps-min`",
        args.steps_min
    );
    anyhow::ensure!(
        runs.iter().any(|run| run.outcome.is_some() || !run.labelled_steps.is_empty()),
        "nothing is known about {count}: give them an `outcome` (\"success\" or \"failure\") or labels ({see})"
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

/// The suite that is asked about comes first; what it must beat stands beside it.
fn report(corpus: &Corpus, args: &QualityArgs, options: &Options) -> anyhow::Result<Report> {
    let embedder = args.meaning.embedder()?;
    let judge = |suite: SuiteArg| -> anyhow::Result<SuiteJudge> {
        let rules = EngineConfig { suite: suite.choice(), ..EngineConfig::default() }.check()?;
        Ok(SuiteJudge::new(rules.with_embedder(Arc::clone(&embedder))))
    };
    let (asked, first_generation) = (judge(args.suite)?, judge(SuiteArg::Heuristic)?);
    let judges: Vec<&dyn Judge> = match args.suite {
        SuiteArg::Heuristic => vec![&asked, &StepCount],
        SuiteArg::Semantic | SuiteArg::Both => vec![&asked, &first_generation, &StepCount],
    };
    let bar = Bar(Out::work("steps judged"));
    Ok(measure(&corpus.runs, &judges, options, &bar))
}

/// Names of sets and judges come from outside.
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

/// So many steps of a plant are shown.
const PLANT_STEPS_SHOWN: usize = 7;

/// Plants to be read: the steps from the first that was changed, a line each for its three texts.
fn plants(corpus: &Corpus, options: &Options) -> anyhow::Result<String> {
    let plants = splice_all(&corpus.runs, options.plants_max, options.seed);
    let width = Out::width().saturating_sub(6);
    let mut text = String::new();
    for plant in plants.iter().filter(|plant| options.shown.holds(&plant.run)) {
        let Spliced { run, kind, variant, start, changed_from } = plant;
        let name = escape_control(&run.id);
        let set = escape_control(&run.set);
        writeln!(
            text,
            "{BOLD}{} ({variant}){BOLD:#} at step {start} of {}: {set} {name}",
            kind.plural(),
            run.steps.len()
        )?;
        let shown = run.steps.iter().enumerate().skip(*changed_from).take(PLANT_STEPS_SHOWN);
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
        "nothing could be planted; it takes successful runs of some length (see `rb quality --help`)"
    );
    Ok(text)
}

fn shown(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        // Whoever read along has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the result"),
    }
}
