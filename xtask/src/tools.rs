//! The programs of others that the tests and benchmarks ask: none becomes part of the product.

use std::path::PathBuf;

use anyhow::Result;

use crate::node::Programs;
use crate::python::Environment;
use crate::shell;

/// The public package that fixes the heuristic suite bit for bit, pinned by hash and without its dependencies: the
/// suite needs none.
pub(crate) const REFERENCE: Environment = Environment {
    name: "reference",
    requirements: "xtask/reference.txt",
    pip: &["--no-deps", "--require-hashes"],
};

/// The public SDKs with the frameworks they adapt, each in an environment of its own.
pub(crate) const SDKS: [Environment; 2] = [
    Environment { name: "sdk-0.1.0", requirements: "e2e/sdk/requirements-0.1.0.txt", pip: &[] },
    Environment { name: "sdk-0.2.5", requirements: "e2e/sdk/requirements-0.2.5.txt", pip: &[] },
];

/// Makes requests from the OpenAPI document and looks at the replies.
pub(crate) const SCHEMATHESIS: Environment =
    Environment { name: "schemathesis", requirements: "e2e/schema/requirements.txt", pip: &[] };

/// The providers' own clients and what is built on them.
pub(crate) const CLIENTS: Environment =
    Environment { name: "clients", requirements: "e2e/gateway/requirements.txt", pip: &[] };

/// Agents that are programs of their own.
pub(crate) const PROGRAMS: Programs =
    Programs { name: "programs", packages: "e2e/gateway/programs.txt" };

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
