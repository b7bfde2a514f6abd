//! Test support for the crates of this workspace. Only ever a dev-dependency, so nothing of it is released.

/// Store that fails on demand.
mod faulty_store;
/// Contract suite of the store.
pub mod store_contract;

pub use faulty_store::{Fault, FaultyStore};
