//! Command line of ReasonBlocks: parses the arguments, runs the command and maps its result to an exit code.

/// Responses of the server's API.
mod api;
/// Top-level parser and the list of commands.
mod cli;
/// One module per command, each with its arguments.
mod commands;
/// Arguments that configure the engine.
mod engine_args;
/// Exit codes.
mod exit;
/// Reader of transcript files.
mod input;
/// Settings of the server: file, environment and flags.
mod settings;
/// Terminal output.
mod ui;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::ui::Out;

/// Steps consist of many small strings that are allocated on one thread and freed on another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Out::new(cli.color);
    let result = match cli.command {
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
    let exit = result.unwrap_or_else(|error| {
        // A reader such as `head` that closes the pipe early is not an error.
        if is_broken_pipe(&error) {
            return Exit::Quiet;
        }
        out.error(&format!("{error:#}"));
        Exit::Error
    });
    exit.into()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
