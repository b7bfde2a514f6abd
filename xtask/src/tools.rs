//! The programs of others that the tests and benchmarks ask: none becomes part of the product.

use std::path::PathBuf;

use anyhow::Result;

use crate::python::Environment;
use crate::shell;

/// The public package that fixes the heuristic suite bit for bit, pinned by hash and without its dependencies: the
/// suite needs none.
pub(crate) const REFERENCE: Environment = Environment {
    name: "reference",
    requirements: "xtask/reference.txt",
    pip: &["--no-deps", "--require-hashes"],
};

/// The newest public package, alone: it runs with the frameworks that ours is tested with.
pub(crate) const PUBLIC: Environment = Environment {
    name: "public",
    requirements: "xtask/public.txt",
    pip: &["--no-deps", "--require-hashes"],
};

/// The program itself, built as the tests use it.
pub(crate) fn rb() -> Result<PathBuf> {
    shell::run(&mut shell::cargo(&["build", "--quiet", "--package", "rb"])?)?;
    Ok(shell::target()?.join("debug").join("rb"))
}
