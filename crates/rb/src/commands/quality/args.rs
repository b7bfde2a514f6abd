//! Arguments of `rb quality`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rb_quality::corpus::Split;

use crate::engine_args::{EmbeddingArgs, SuiteArg};

/// Measures how good the monitors are, on runs whose outcome or mistakes are known.
///
/// Reports for every set (one per file) how often monitors fire on successful and failed runs, how well
/// the score separates them at equal length, and whether alarms agree with labelled steps. Then injects
/// faults into successful runs and reports the detection rate. One third of the tasks is held out: tune
/// on `dev`, trust `held out`.
///
/// All runs are in memory at once; runs without steps are skipped.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct QualityArgs {
    /// Files, directories or `-` for standard input, as in `rb check`. Each file is a set.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Monitors that must meet the targets, compared with the heuristic suite and the number of steps.
    #[arg(long, value_enum, default_value_t = SuiteArg::Semantic)]
    pub(crate) suite: SuiteArg,

    #[command(flatten)]
    pub(crate) embedding: EmbeddingArgs,

    /// Show all parts, monitors, sets and variants of faults.
    #[arg(long)]
    pub(crate) full: bool,

    /// Write the whole report as one JSON object.
    #[arg(long, conflicts_with = "full")]
    pub(crate) json: bool,

    /// Also write the report as a standalone HTML page with the worst false alarms.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Also write totals per monitor as JSON, without texts of runs; used by the documentation.
    #[arg(long, value_name = "FILE")]
    pub(crate) figures: Option<PathBuf>,

    /// Exit with 1 if a target is missed on this part; targets that cannot be measured are ignored.
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true,
          default_missing_value = "all", value_enum)]
    pub(crate) check: Option<PartArg>,

    /// Seed of the random numbers; the same seed gives the same report.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Minimum number of steps of a run.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) steps_min: usize,

    /// Maximum number of injected faults per kind and set.
    #[arg(long, alias = "plants", value_name = "N", default_value_t = 60)]
    pub(crate) faults: usize,

    /// Inject no faults.
    #[arg(long, alias = "no-plants", conflicts_with_all = ["faults", "show_faults"])]
    pub(crate) no_faults: bool,

    /// Only print this number of injected faults per kind and set.
    #[arg(long, alias = "show-plants", value_name = "N",
          conflicts_with_all = ["full", "json", "html", "figures", "check", "faults"])]
    pub(crate) show_faults: Option<usize>,

    /// Maximum number of false alarms in the HTML page and the JSON.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) alarms: usize,

    /// Also show texts of the held-out part. Avoid while tuning: it leaks the test set.
    #[arg(long)]
    pub(crate) show_held_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartArg {
    /// All tasks.
    All,
    /// Two thirds of the tasks, for tuning.
    Dev,
    /// One third of the tasks.
    HeldOut,
}

impl PartArg {
    pub(crate) fn split(self) -> Split {
        match self {
            Self::All => Split::All,
            Self::Dev => Split::Dev,
            Self::HeldOut => Split::HeldOut,
        }
    }
}

const AFTER_HELP: &str = "\
One line of input, shown here with line breaks (`steps` as in `rb check`; the rest is optional):
  {\"run_id\": \"r1\", \"task\": \"Fix the parser.\", \"outcome\": \"success\" or \"failure\",
   \"labels\": {\"labelled_steps\": [{\"step_index\": 3, \"category\": \"loop\"}]}, \"steps\": […]}
  Runs with the same `task` are resampled and held out together. Steps are counted from 0. Labels are
  also read from `labels.errors` (`step_index` and `category`) and from `labels.mistake_step`.

Exit codes:
  0  the report was written
  1  with --check: a target was missed
  2  an error: unreadable path, bad line or nothing to measure; everything else was measured

Examples:
  rb quality runs.jsonl
  rb quality transcripts/ --html quality.html
  rb quality transcripts/ --no-faults --json | jq '.sets[] | select(.split == \"held_out\")'
  rb quality nightly.jsonl.gz --check=held-out
  rb quality runs.jsonl --show-faults 2

Meaning of the numbers: docs/quality.md";
