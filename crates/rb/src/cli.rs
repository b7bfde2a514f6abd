//! The flags, and nothing else: what they mean is decided by the commands.

/// What stands below the flags.
mod help;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use rb_engine::config::weights::Profile;
use rb_engine::monitors::SuiteChoice;
use rb_quality::corpus::Split;

use self::help::{
    AFTER_CHECK, AFTER_IMPORT, AFTER_QUALITY, AFTER_REPORT, AFTER_RUN, AFTER_SERVE, AFTER_WATCH,
};
use crate::meaning::MeaningArgs;

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
    Quality(QualityArgs),
    Report(ReportArgs),
    Import(ImportArgs),
    Runs(RunsArgs),
    Show(ShowArgs),
    Watch(WatchArgs),
    Serve(ServeArgs),
    Keys(KeysArgs),
    Migrate(crate::commands::migrate::MigrateArgs),
    Doctor(DoctorArgs),
    Run(RunArgs),
    Demo(DemoArgs),
}

/// Shows how a looping agent is steered, in ten seconds and without any key.
///
/// The agent and the model are scripts; the gateway between them is the real one. Everything happens on this
/// machine, in memory, and nothing is kept. In a terminal, the dashboard with both runs stays until Enter.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave the dashboard with both runs up until Ctrl-C.
    #[arg(long)]
    pub(crate) stay: bool,
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
/// Takes what agents, tracing tools and benchmarks keep of their runs: Claude Code, Codex, Gemini CLI,
/// SWE-agent, OpenTelemetry, Langfuse, bare messages and many more; see below. The format is told by
/// the content, not by the name. A file may be compressed with gzip, may still be written to, and may
/// be damaged: what can be read is read, and the rest is told.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_CHECK)]
pub(crate) struct CheckArgs {
    /// Files, folders or `-` for standard input. Of a folder, all `.jsonl`, `.ndjson`, `.json`, `.traj`
    /// and `.log` files that are transcripts are read, also compressed ones (`.gz`), sorted by name.
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

    #[command(flatten)]
    pub(crate) meaning: MeaningArgs,

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

impl SuiteArg {
    /// As the engine calls it.
    pub(crate) fn choice(self) -> SuiteChoice {
        match self {
            Self::Heuristic => SuiteChoice::Heuristic,
            Self::Semantic => SuiteChoice::Semantic,
            Self::Both => SuiteChoice::Both,
        }
    }
}

/// Measures how good the monitors are, on runs whose outcome or mistakes are known.
///
/// For every set (a file is one) it tells how often monitors fire on successes and failures, how well
/// they tell failures from successes of the same length, and whether they agree with people on the
/// step. Then it plants faults into successful runs and counts which are found. A third of the tasks is
/// held out: tune on the part `dev`, believe the part `held out`.
///
/// All runs are held in memory at once; runs without steps are left out.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_QUALITY)]
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
    pub(crate) meaning: MeaningArgs,

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

/// Draws runs as one page to read, print and pass on: what happened, where it went astray, and why.
///
/// The page is one file; it loads nothing and runs nothing. Of a folder, it lists all runs, the worst first, compares
/// agents and models, and shows the worst runs in full.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_REPORT)]
pub(crate) struct ReportArgs {
    /// A transcript or a folder of them in any format of `rb check`, `-` for standard input, or the id of a stored run.
    #[arg(value_name = "RUN|FILE|FOLDER")]
    pub(crate) what: String,

    /// The page; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,

    /// Which monitors watch.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) suite: SuiteArg,

    /// At most so many runs are shown in full, the worst ones.
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub(crate) runs_max: usize,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Takes recorded runs into the store, to be looked at in the dashboard.
///
/// Reads what `rb check` reads and judges it in the same way. Names, times, models, tokens, costs and outcomes are kept
/// where the source has them. What was taken before is brought up to date, not doubled: a session that has grown
/// gets its new steps.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_IMPORT)]
pub(crate) struct ImportArgs {
    /// Files, folders or `-` for standard input, as in `rb check`.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The organisation that the runs belong to.
    #[arg(long, value_name = "ID", default_value = rb_server::auth::ORG_DEFAULT)]
    pub(crate) org: String,

    /// The project that they belong to.
    #[arg(long, value_name = "ID", default_value = rb_server::auth::PROJECT_DEFAULT)]
    pub(crate) project: String,

    /// Send them to this running server instead of opening its database.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The key of that server; otherwise `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Lists the runs in the store, newest first, one a line.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Only those of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Only those in which this monitor fired.
    #[arg(long, value_name = "MONITOR")]
    pub(crate) fired: Option<String>,

    /// Only those with this text in their id, task or agent.
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// At most so many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) count: u32,

    /// Write one JSON object a run and line, for programs.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Shows a stored run in the terminal: one line a step, with what fired and what was said.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id of the run; `rb runs` lists them.
    #[arg(value_name = "RUN")]
    pub(crate) run_id: String,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Shows what the agents of a running server do, as it happens.
///
/// One line a run: who, with which model, how many steps, how the newest were scored, what fired, and what it cost. The
/// return key shows a run in full. Where standard output is no terminal, every step is a plain line instead.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_WATCH)]
pub(crate) struct WatchArgs {
    /// The server to watch; otherwise `REASONBLOCKS_BASE_URL`, or the address in the settings.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The key to ask with; otherwise `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Plain lines, even on a terminal.
    #[arg(long)]
    pub(crate) plain: bool,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Where the server's data and settings are.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// The folder for the database and the configuration; made if it is not there. Also `RB_DATA_DIR`.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data_dir: Option<PathBuf>,

    /// The configuration, in TOML; `config.toml` in the data folder if it is there. Also `RB_CONFIG`.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Another database than the one in the data folder: `sqlite:PATH` or `postgres://…`. Also `RB_DATABASE_URL`.
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) database_url: Option<String>,
}

/// Serves the API that the public SDKs talk to.
///
/// Listens on 127.0.0.1:9000, the SDKs' default, and keeps everything in one folder. Without a key it is open to
/// everyone on this machine and refuses to listen on any other address.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_SERVE)]
pub(crate) struct ServeArgs {
    /// The address and port to listen on. Also `RB_LISTEN`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// How log lines look on standard error; `RB_LOG` says how many there are.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Makes, lists and revokes the keys of a server.
///
/// A key belongs to an organisation, perhaps to one of its projects, and sees nothing else. Only its hash is kept.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Makes a key and shows it, this once.
    Create {
        /// What it is for.
        #[arg(long, value_name = "TEXT", default_value = "")]
        name: String,
        /// The organisation it belongs to.
        #[arg(long, value_name = "ID", default_value = rb_server::auth::ORG_DEFAULT)]
        org: String,
        /// The one project it may see; all of the organisation's if left out.
        #[arg(long, value_name = "ID")]
        project: Option<String>,
        /// Begins with `rb_test_` instead of `rb_live_`.
        #[arg(long)]
        test: bool,
    },
    /// Lists the keys by id, without their secrets.
    List {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Refuses a key from now on.
    Revoke {
        /// Its id, its name, or the key itself.
        key: String,
    },
}

/// Looks at a set-up, as a client would, and says what is wrong with it.
///
/// Reads the settings and the data of this machine, the environment that an agent would see, and asks a running server
/// who we are, whether it notices a loop, and what its library holds. Ends with 1 if something is wrong.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The server to ask; otherwise `REASONBLOCKS_BASE_URL`, or the address in the settings.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The key to ask with; otherwise `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Runs a command with the gateway between it and its provider.
///
/// Starts a gateway on a free port of this machine, tells only the command about it, and ends with it. The command keeps
/// its terminal, its keys and its exit code; at the end, what happened is told on standard error. Logs go to `run.log` in
/// the data folder.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_RUN)]
pub(crate) struct RunArgs {
    /// Use this running server instead of starting a gateway.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The key of that server; otherwise `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// The command and its arguments, after `--`.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

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
    fn the_help_names_every_format() {
        let formats = AFTER_CHECK.split("\n\n").next().unwrap_or_default();
        for importer in &rb_wire::transcripts::IMPORTERS {
            let is_named = formats.split([',', '\n']).any(|name| name.trim() == importer.id);
            assert!(is_named, "{} is missing in the help of `rb check`", importer.id);
        }
    }

    #[test]
    fn the_flags_fit_together() {
        Cli::command().debug_assert();
    }
}
