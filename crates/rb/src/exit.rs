//! How a command ends.

use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing to report.
    Quiet,
    /// A monitor fired.
    Fired,
    /// A target was missed.
    Missed,
    /// Something could not be read or done.
    Error,
    /// As the command ended that was run.
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
