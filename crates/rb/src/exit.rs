//! Exit codes of all commands.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success with nothing to report.
    Quiet,
    /// A monitor fired.
    Fired,
    /// A target or a check failed.
    Missed,
    /// Part of the work failed.
    Error,
    /// Exit code of the command started by `rb run`.
    Child(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Quiet => 0,
            Exit::Fired | Exit::Missed => 1,
            Exit::Error => 2,
            Exit::Child(code) => code,
        })
    }
}
