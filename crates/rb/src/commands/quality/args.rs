//! Arguments of `rb quality`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rb_quality::corpus::Split;

use crate::engine_args::{EmbeddingArgs, SuiteArg};

/// Measures how good the monitors are, on runs whose outcome or mistakes are known.
///
/// For every set (a file is one) it tells how often monitors fire on successes and failures, how well
/// they tell failures from successes of the same length, and whether they agree with people on the
/// step. Then it plants faults into successful runs and counts which are found. A third of the tasks is
/// held out: tune on the part `dev`, believe the part `held out`.
///
/// All runs are held in memory at once; runs without steps are left out.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct QualityArgs {
    /// Files, folders or `-` for standard input, as in `rb check`. A file is a set.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The monitors that the targets are about. The first generation and the plain number of steps
    /// stand beside them.
    #[arg(long, value_enum, default_value_t = SuiteArg::Semantic)]
    pub(crate) suite: SuiteArg,

    #[command(flatten)]
    pub(crate) meaning: EmbeddingArgs,

    /// Show everything: all parts, single monitors, sets and ways of planting.
    #[arg(long)]
    pub(crate) full: bool,

    /// Write the whole report as one JSON object, for programs.
    #[arg(long, conflicts_with = "full")]
    pub(crate) json: bool,

    /// Write the whole report as a web page too, with the worst false alarms to read. It needs no
    /// network.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write what each monitor did over all sets, in short and without any text of a run, as JSON. The
    /// documentation quotes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) figures: Option<PathBuf>,

    /// Exit with 1 when a target is missed on this part; targets that cannot be measured do not count.
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true,
          default_missing_value = "all", value_enum)]
    pub(crate) check: Option<PartArg>,

    /// What chance is drawn from: the same seed gives the same report.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Leave out runs with fewer steps.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) steps_min: usize,

    /// At most so many plants of each kind into each set.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) plants: usize,

    /// Plant nothing.
    #[arg(long, conflicts_with_all = ["plants", "show_plants"])]
    pub(crate) no_plants: bool,

    /// Show so many plants of each kind and set, to be read, and measure nothing.
    #[arg(long, value_name = "N", conflicts_with_all = ["full", "json", "html", "figures", "check", "plants"])]
    pub(crate) show_plants: Option<usize>,

    /// At most so many false alarms in the page and the JSON.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) alarms: usize,

    /// Show texts of the part held out too. Who reads them while tuning has nothing held out.
    #[arg(long)]
    pub(crate) show_held_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartArg {
    /// Everything.
    All,
    /// Two tasks in three.
    Dev,
    /// One task in three.
    HeldOut,
}

impl PartArg {
    /// As the measuring room calls it.
    pub(crate) fn split(self) -> Split {
        match self {
            Self::All => Split::All,
            Self::Dev => Split::Dev,
            Self::HeldOut => Split::HeldOut,
        }
    }
}

const AFTER_HELP: &str = "\
A line of input, here with line breaks (`steps` as in `rb check`; the more of the rest the better):
  {\"run_id\": \"r1\", \"task\": \"Mend the parser.\", \"outcome\": \"success\" or \"failure\",
   \"labels\": {\"labelled_steps\": [{\"step_index\": 3, \"category\": \"loop\"}]}, \"steps\": […]}
  Runs with the same `task` are drawn and held out together. Steps are counted from 0. Labels are
  also read from `labels.errors` (`step_index` and `category`) and from `labels.mistake_step`.

Exit codes:
  0  the report was written
  1  with --check: a target was missed
  2  an error: a path that cannot be read, a bad line, or nothing to measure; the rest was measured

Examples:
  rb quality runs.jsonl
  rb quality transcripts/ --html quality.html
  rb quality transcripts/ --no-plants --json | jq '.sets[] | select(.split == \"held_out\")'
  rb quality nightly.jsonl.gz --check=held-out
  rb quality runs.jsonl --show-plants 2

What the numbers mean: docs/quality.md";
