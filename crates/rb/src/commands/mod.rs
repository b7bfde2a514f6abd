//! One file or folder a command.

/// `rb check`: where did recorded runs go astray?
pub(crate) mod check;
/// `rb quality`: how good are the monitors on runs whose outcome is known?
pub(crate) mod quality;
