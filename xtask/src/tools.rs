//! The programs of others that the tests and benchmarks ask: none becomes part of the product.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::node::Programs;
use crate::python::Environment;
use crate::{python, shell};

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

/// OpenTelemetry's own SDK and exporter.
pub(crate) const OTLP: Environment =
    Environment { name: "otlp", requirements: "e2e/otlp/requirements.txt", pip: &[] };
/// Drives a browser through the pages. The browser itself is Debian's.
pub(crate) const BROWSER: Environment =
    Environment { name: "browser", requirements: "e2e/dashboard/requirements.txt", pip: &[] };

/// Knows the schemas of Kubernetes.
pub(crate) const MANIFESTS: Environment =
    Environment { name: "manifests", requirements: "xtask/manifests.txt", pip: &[] };

/// Debian's Caddy, installed where it is missing and we may.
pub(crate) fn ensure_caddy() -> Result<()> {
    if shell::succeeds(shell::program("caddy")?.arg("version")) {
        return Ok(());
    }
    python::apt(&["caddy"])
}

/// Debian's Chromium, installed where it is missing and we may.
pub(crate) fn ensure_browser() -> Result<()> {
    let named = std::env::var("RB_CHROMIUM");
    let browser = named.as_deref().unwrap_or("/usr/bin/chromium");
    if shell::succeeds(shell::program(browser)?.arg("--version")) {
        return Ok(());
    }
    python::apt(&["chromium"])
}

/// Writes the pictures of the pages that the README shows.
pub(crate) fn pictures() -> Result<()> {
    ensure_browser()?;
    let rb = rb()?;
    let folder = shell::root()?.join("docs").join("pictures");
    std::fs::create_dir_all(&folder)?;
    let mut draw = shell::program(BROWSER.install()?)?;
    draw.arg("e2e/dashboard/pictures.py").arg(folder);
    // pytest finds what the folders share by itself.
    draw.env("PYTHONPATH", shell::root()?.join("e2e"));
    shell::run(draw.env("RB_BIN", rb).env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// The newest public package, alone: it runs with the frameworks that ours is tested with.
pub(crate) const PUBLIC: Environment = Environment {
    name: "public",
    requirements: "xtask/public.txt",
    pip: &["--no-deps", "--require-hashes"],
};

/// The database that many nodes share: the tests start servers of their own, so it need not run, only be there.
pub(crate) fn postgresql() -> Result<()> {
    let is_there = |folder: &Path| folder.join("initdb").is_file();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let of_path = std::env::var_os("PATH").unwrap_or_default();
    if debian.map(|version| version.path().join("bin")).any(|folder| is_there(&folder))
        || std::env::split_paths(&of_path).any(|folder| is_there(&folder))
    {
        return Ok(());
    }
    python::apt(&["postgresql"])
}

/// The program itself, built as the tests use it.
pub(crate) fn rb() -> Result<PathBuf> {
    shell::run(&mut shell::cargo(&["build", "--quiet", "--package", "rb"])?)?;
    Ok(shell::target()?.join("debug").join("rb"))
}
