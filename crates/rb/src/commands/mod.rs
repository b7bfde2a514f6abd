//! One module per command, each with its arguments and a function that runs it.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod quality;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod watch;
