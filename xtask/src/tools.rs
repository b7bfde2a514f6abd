//! External programs used by the tests. None of them becomes part of the product.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::node::Programs;
use crate::python::Environment;
use crate::{python, shell};

/// The public package that defines the heuristic suite bit for bit. Pinned by hash, without its dependencies, which the
/// suite does not use.
pub(crate) const REFERENCE: Environment = Environment {
    name: "reference",
    requirements: "xtask/reference.txt",
    pip: &["--no-deps", "--require-hashes"],
};

/// The public SDKs with their frameworks.
pub(crate) const SDKS: [Environment; 2] = [
    Environment { name: "sdk-0.1.0", requirements: "e2e/sdk/requirements-0.1.0.txt", pip: &[] },
    Environment { name: "sdk-0.2.5", requirements: "e2e/sdk/requirements-0.2.5.txt", pip: &[] },
];

/// Generates requests from the OpenAPI document and validates the responses.
pub(crate) const SCHEMATHESIS: Environment =
    Environment { name: "schemathesis", requirements: "e2e/schema/requirements.txt", pip: &[] };

/// The providers' clients and frameworks built on them.
pub(crate) const CLIENTS: Environment =
    Environment { name: "clients", requirements: "e2e/gateway/requirements.txt", pip: &[] };

/// Coding agents from npm.
pub(crate) const PROGRAMS: Programs =
    Programs { name: "programs", packages: "e2e/gateway/programs.txt" };

/// The OpenTelemetry SDK and exporter.
pub(crate) const OTLP: Environment =
    Environment { name: "otlp", requirements: "e2e/otlp/requirements.txt", pip: &[] };
/// Browser automation; the browser is a Debian package.
pub(crate) const BROWSER: Environment =
    Environment { name: "browser", requirements: "e2e/dashboard/requirements.txt", pip: &[] };

/// The Kubernetes schemas.
pub(crate) const MANIFESTS: Environment =
    Environment { name: "manifests", requirements: "xtask/manifests.txt", pip: &[] };

/// Installs Caddy if it is missing.
pub(crate) fn ensure_caddy() -> Result<()> {
    if shell::succeeds(shell::program("caddy")?.arg("version")) {
        return Ok(());
    }
    python::apt(&["caddy"])
}

/// Installs Chromium if it is missing.
pub(crate) fn ensure_browser() -> Result<()> {
    let named = std::env::var("RB_CHROMIUM");
    let browser = named.as_deref().unwrap_or("/usr/bin/chromium");
    if shell::succeeds(shell::program(browser)?.arg("--version")) {
        return Ok(());
    }
    python::apt(&["chromium"])
}

/// Draws the screenshots of the README.
pub(crate) fn pictures() -> Result<()> {
    ensure_browser()?;
    let rb = rb()?;
    let folder = shell::root()?.join("docs").join("pictures");
    std::fs::create_dir_all(&folder)?;
    let mut draw = shell::program(BROWSER.install()?)?;
    draw.arg("e2e/dashboard/pictures.py").arg(folder);
    // pytest adds this folder by itself.
    draw.env("PYTHONPATH", shell::root()?.join("e2e"));
    shell::run(draw.env("RB_BIN", rb).env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// The newest public package without dependencies; it runs with the frameworks of the test environment.
pub(crate) const PUBLIC: Environment = Environment {
    name: "public",
    requirements: "xtask/public.txt",
    pip: &["--no-deps", "--require-hashes"],
};

/// Installs PostgreSQL if it is missing. The tests start their own servers.
pub(crate) fn postgresql() -> Result<()> {
    let has_initdb = |folder: &Path| folder.join("initdb").is_file();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let of_path = std::env::var_os("PATH").unwrap_or_default();
    if debian.map(|version| version.path().join("bin")).any(|folder| has_initdb(&folder))
        || std::env::split_paths(&of_path).any(|folder| has_initdb(&folder))
    {
        return Ok(());
    }
    python::apt(&["postgresql"])
}

/// Builds the debug `rb` and returns its path.
pub(crate) fn rb() -> Result<PathBuf> {
    shell::run(&mut shell::cargo(&["build", "--quiet", "--package", "rb"])?)?;
    Ok(shell::target()?.join("debug").join("rb"))
}
