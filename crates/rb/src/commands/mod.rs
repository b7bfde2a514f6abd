//! One file or folder a command.

/// `rb check`: where did recorded runs go astray?
pub(crate) mod check;
/// `rb demo`: how a looping agent is steered, without any key.
pub(crate) mod demo;
/// `rb doctor`: what is wrong with a set-up?
pub(crate) mod doctor;
/// `rb import`: recorded runs into the store.
pub(crate) mod import;
/// `rb keys`: the keys of a server.
pub(crate) mod keys;
/// `rb migrate`: from one database to another.
pub(crate) mod migrate;
/// `rb quality`: how good are the monitors on runs whose outcome is known?
pub(crate) mod quality;
/// `rb report`: runs as a page to read.
pub(crate) mod report;
/// `rb run`: a command with the gateway before its provider.
pub(crate) mod run;
/// `rb runs` and `rb show`: what the store holds.
pub(crate) mod runs;
/// `rb serve`: the server.
pub(crate) mod serve;
/// `rb watch`: what the agents of a server do, as it happens.
pub(crate) mod watch;
