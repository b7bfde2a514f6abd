//! One file or folder a command.

/// `rb check`: where did recorded runs go astray?
pub(crate) mod check;
