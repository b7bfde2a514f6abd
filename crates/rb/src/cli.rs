//! The flags, and nothing else: what they mean is decided by the commands.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use rb_engine::weights::Profile;

/// Watches LLM agents step by step and says where they go astray.
#[derive(Debug, Parser)]
#[command(name = "rb", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colour; `auto` heeds the terminal, `NO_COLOR` and `CLICOLOR`.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(CheckArgs),
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// Looks through recorded runs and shows where a monitor fired, and why.
///
/// A file holds one run a line, a JSON object with a list of `steps`; see below. It may be compressed
/// with gzip, whatever its name.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_CHECK)]
pub(crate) struct CheckArgs {
    /// Files, folders or `-` for standard input. Of a folder, all `.jsonl` and `.ndjson` files are
    /// read, also compressed ones (`.gz`), sorted by name.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Which monitors watch.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) suite: SuiteArg,

    /// Whose weights make the composite.
    #[arg(long, value_name = "NAME", default_value = Profile::default().name(),
          value_parser = PossibleValuesParser::new(Profile::ALL.map(Profile::name)))]
    pub(crate) profile: String,

    /// Weigh a monitor differently, between 0 and 1; may be repeated.
    #[arg(long = "weight", value_name = "NAME=X", value_parser = weight)]
    pub(crate) weights: Vec<(String, f64)>,

    /// Show only the runs in which something fired.
    #[arg(long)]
    pub(crate) only_fired: bool,

    /// Write one JSON object a run and line, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SuiteArg {
    /// The first generation: what is counted and compared.
    Heuristic,
    /// The second generation: what is meant.
    Semantic,
    /// All there are.
    #[default]
    Both,
}

const AFTER_CHECK: &str = "\
A line of input, here with line breaks (only `steps` must be there):
  {\"run_id\": \"r1\", \"outcome\": \"failure\", \"steps\": [
    {\"thought\": \"Let me look.\", \"action\": \"bash\", \"action_input\": \"ls\",
     \"observation\": \"a.rs\", \"is_error\": false}, …]}

A line of output with --json, here with line breaks:
  {\"run_id\": \"r1\", \"outcome\": \"failure\", \"fires\": […], \"steps\": [
    {\"step_index\": 0, \"difficulty\": 0.05, \"fsm_state\": \"NORMAL\",
     \"scores\": {\"streak\": 0.0, …}, \"composite\": 0.0075, \"fired\": []}, …], …}
  `difficulty` is null where a step has no thought.

Exit codes:
  0  nothing fired
  1  a monitor fired
  2  an error: a path that cannot be read, a bad line, or no run at all; the rest was checked

Examples:
  rb check runs.jsonl
  rb check transcripts/ --suite heuristic --profile qa --weight streak=0.1
  zcat runs.jsonl.gz | rb check - --json | jq 'select(.fires != []) | .run_id'";

fn weight(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "write it as NAME=X, for example streak=0.5".to_owned())?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("`{value}` is not a number; write for example {name}=0.5"))?;
    Ok((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_flags_fit_together() {
        Cli::command().debug_assert();
    }
}
