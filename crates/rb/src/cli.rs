//! Top-level parser: global flags and the list of commands. Each command defines its own arguments.

use clap::{Parser, Subcommand};

use crate::commands::{
    check, demo, doctor, import, keys, migrate, quality, report, run, runs, serve, watch,
};
use crate::ui::Color;

/// Watches LLM agents step by step and reports where they go wrong.
#[derive(Debug, Parser)]
#[command(name = "rb", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colour; `auto` depends on the terminal, `NO_COLOR` and `CLICOLOR`.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::CheckArgs),
    Quality(quality::QualityArgs),
    Report(report::ReportArgs),
    Import(import::ImportArgs),
    Runs(runs::RunsArgs),
    Show(runs::ShowArgs),
    Watch(watch::WatchArgs),
    Serve(serve::ServeArgs),
    Keys(keys::KeysArgs),
    Migrate(migrate::MigrateArgs),
    Doctor(doctor::DoctorArgs),
    Run(run::RunArgs),
    Demo(demo::DemoArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
