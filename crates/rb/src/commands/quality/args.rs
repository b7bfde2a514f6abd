//! Arguments of `rb quality`.

use std::path::PathBuf;

use clap::Args;

use crate::engine_args::{EmbeddingArgs, SuiteArg};

/// Evaluates the monitors on runs whose outcome or mistakes are known.
///
/// Reports for every set of runs (a file is a set) how often the monitors fire on successes and on failures, how well the
/// composite separates failures from successes of the same length, and how well alarms agree with labelled steps.
///
/// All runs are held in memory. Runs without steps are skipped.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct QualityArgs {
    /// Files, directories or `-` for standard input, as in `rb check`. A file is a set.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The suite to evaluate. The heuristic suite and the number of steps are always added as baselines.
    #[arg(long, value_enum, default_value_t = SuiteArg::Semantic)]
    pub(crate) suite: SuiteArg,

    #[command(flatten)]
    pub(crate) meaning: EmbeddingArgs,

    /// Print the whole report as one JSON object, with the tuning and held-out tasks separately.
    #[arg(long)]
    pub(crate) json: bool,

    /// Seed of the resampling; the same seed gives the same report.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Skip runs with fewer steps.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) steps_min: usize,
}

const AFTER_HELP: &str = "\
A line of input, here with line breaks (`steps` as in `rb check`; every other field is optional):
  {\"run_id\": \"r1\", \"task\": \"Fix the parser.\", \"outcome\": \"success\" or \"failure\",
   \"labels\": {\"labelled_steps\": [{\"step_index\": 3, \"category\": \"loop\"}]}, \"steps\": […]}
  Runs with the same `task` are resampled and held out together. Steps are counted from 0. Labels are
  also read from `labels.errors` (`step_index` and `category`) and from `labels.mistake_step`.

Exit codes:
  0  the report was printed
  2  an error: an unreadable path, an invalid line, or no run to evaluate; the rest was evaluated

Examples:
  rb quality runs.jsonl
  rb quality transcripts/ --json | jq '.sets[] | select(.split == \"held_out\")'

The method: docs/quality.md";
