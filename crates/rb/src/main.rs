//! The command line of ReasonBlocks: parse, run the command, answer with an exit code.

/// The flags.
mod cli;
/// One file or folder a command.
mod commands;
/// How a command ends.
mod exit;
/// Where runs come from.
mod input;
/// What texts mean.
mod meaning;
/// The only place that prints.
mod out;
/// Where the settings of the server come from.
mod settings;

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::out::Out;

/// A step is some hundred small texts, made on one thread and dropped on another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Out::new(cli.color);
    let ended = match cli.command {
        Command::Check(args) => commands::check::run(&args, &mut out),
        Command::Quality(args) => commands::quality::run(&args, &mut out),
        Command::Report(args) => commands::report::run(&args, &mut out),
        Command::Import(args) => commands::import::run(&args, &mut out),
        Command::Runs(args) => commands::runs::list(&args, &mut out),
        Command::Show(args) => commands::runs::show(&args, &mut out),
        Command::Watch(args) => commands::watch::run(&args, &mut out),
        Command::Serve(args) => commands::serve::run(&args, &mut out),
        Command::Keys(args) => commands::keys::run(&args, &mut out),
        Command::Migrate(args) => commands::migrate::run(&args, &mut out),
        Command::Doctor(args) => commands::doctor::run(&args, &mut out),
        Command::Run(args) => commands::run::run(&args, &mut out),
        Command::Demo(args) => commands::demo::run(&args, &mut out),
    };
    let exit = ended.unwrap_or_else(|error| {
        out.error(&format!("{error:#}"));
        Exit::Error
    });
    exit.into()
}
