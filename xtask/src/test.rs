//! The stages of `cargo xtask test`. A failing stage does not stop the others.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::python::Environment;
use crate::{out, package, shell, tidy, tools};

/// Optional test vectors beside the checkout.
const VECTORS: &str = "../shared/contract-vectors.json";

struct Stage {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

const STAGES: [Stage; 14] = [
    Stage { name: "tools", about: "programs for the tests", run: tools_stage },
    Stage { name: "fmt", about: "formatting", run: || cargo(&["fmt", "--all", "--", "--check"]) },
    Stage { name: "clippy", about: "lints", run: clippy },
    Stage { name: "tests", about: "all tests", run: tests },
    Stage { name: "python", about: "the Python package", run: package::check },
    Stage { name: "sdk", about: "the public SDKs against a running server", run: sdk },
    Stage {
        name: "schema",
        about: "requests from the OpenAPI document, and killed servers",
        run: schema,
    },
    Stage { name: "nodes", about: "three nodes on one PostgreSQL, and killed nodes", run: nodes },
    Stage {
        name: "clients",
        about: "real clients through the gateway, OpenTelemetry's SDK, and a real terminal",
        run: clients,
    },
    Stage { name: "dashboard", about: "the dashboard in a real browser", run: dashboard },
    Stage { name: "deploy", about: "validation of the files in deploy/", run: deploy },
    Stage { name: "tidy", about: "project rules", run: || none(&tidy::problems()?) },
    Stage { name: "docs", about: "documentation of the code", run: docs },
    Stage { name: "hygiene", about: "licences and sources", run: || none(&tidy::hygiene()?) },
];

/// Runs the named stages, or all of them.
pub(crate) fn run(names: &[&str]) -> Result<ExitCode> {
    if let Some(unknown) = names.iter().find(|name| STAGES.iter().all(|stage| stage.name != **name))
    {
        let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        bail!("unknown stage: `{unknown}`; use {}", known.join(", "));
    }
    let chosen = |stage: &&Stage| names.is_empty() || names.contains(&stage.name);
    let started = Instant::now();
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    for stage in STAGES.iter().filter(chosen) {
        out::line(&format!("==> {}: {}", stage.name, stage.about));
        let stage_started = Instant::now();
        let result = (stage.run)();
        let time = out::seconds(stage_started.elapsed());
        match result {
            Ok(()) => {
                out::line(&format!("    {} passed in {time}", stage.name));
                passed.push(stage.name);
            }
            Err(error) => {
                out::line(&format!("    {} FAILED in {time}: {error:#}", stage.name));
                failed.push(stage.name);
            }
        }
    }
    let time = out::seconds(started.elapsed());
    if failed.is_empty() {
        out::line(&format!("xtask test: passed in {time} ({})", passed.join(", ")));
        return Ok(ExitCode::SUCCESS);
    }
    let again = format!("cargo xtask test {}", failed.join(" "));
    out::line(&format!("xtask test: FAILED in {time}: {} (again: `{again}`)", failed.join(", ")));
    Ok(ExitCode::FAILURE)
}

fn tools_stage() -> Result<()> {
    tools::ensure_browser()?;
    tools::postgresql()?;
    tools::REFERENCE.install().map(drop)
}

fn cargo(args: &[&str]) -> Result<()> {
    shell::run(&mut shell::cargo(args)?)
}

fn clippy() -> Result<()> {
    cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn tests() -> Result<()> {
    let mut tests = shell::cargo(&["test", "--workspace", "--no-fail-fast"])?;
    // Snapshots are reviewed and accepted by hand.
    tests.env("INSTA_UPDATE", "no");
    // Without this, tests that need PostgreSQL are skipped where it is missing.
    tests.env("RB_TEST_POSTGRES", "1");
    match tools::REFERENCE.python() {
        Some(python) => {
            tests.env("RB_REFERENCE_PYTHON", python);
        }
        None => out::line(
            "    skipped: tests against the reference package; `cargo xtask test tools` installs it",
        ),
    }
    let vectors = shell::root()?.join(VECTORS);
    if vectors.is_file() {
        tests.env("RB_CONTRACT_VECTORS", vectors.canonicalize().context(VECTORS)?);
    }
    shell::run(&mut tests)
}

fn sdk() -> Result<()> {
    tools::SDKS.iter().try_for_each(|sdk| pytest(sdk, &["e2e/sdk"]))
}

/// Generated requests, and servers killed while they write.
fn schema() -> Result<()> {
    pytest(&tools::SCHEMATHESIS, &["e2e/schema", "e2e/durable"])
}

/// Several nodes that share a database, with nodes, database and network failing.
fn nodes() -> Result<()> {
    tools::postgresql()?;
    pytest(&tools::SCHEMATHESIS, &["e2e/nodes", "-s"])
}

fn clients() -> Result<()> {
    let programs = tools::PROGRAMS.install()?;
    let mut tests = tests_in(&tools::CLIENTS, &["e2e/gateway"])?;
    shell::run(tests.env("RB_PROGRAMS", programs)).context(tools::CLIENTS.name)?;
    pytest(&tools::OTLP, &["e2e/otlp", "e2e/terminal"])
}

fn dashboard() -> Result<()> {
    tools::ensure_browser()?;
    pytest(&tools::BROWSER, &["e2e/dashboard"])
}

/// Validates the Caddyfile, the Kubernetes manifests and the systemd unit without starting anything.
fn deploy() -> Result<()> {
    tools::ensure_caddy()?;
    let mut caddy = shell::program("caddy")?;
    caddy.args(["validate", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"]);
    shell::read(&mut caddy)?;
    let mut manifests = tools::MANIFESTS.module("kubernetes_validate")?;
    shell::read(manifests.args(["--strict", "deploy/kubernetes/reasonblocks.yaml"]))?;
    if !shell::succeeds(shell::program("systemd-analyze")?.arg("--version")) {
        out::line("    skipped: the systemd unit; systemd-analyze is missing");
        return Ok(());
    }
    // The path in the unit does not exist here; validation needs one that does.
    let unit = std::fs::read_to_string(shell::root()?.join("deploy/reasonblocks.service"))?;
    let folder = shell::target()?.join("deploy");
    std::fs::create_dir_all(&folder)?;
    let copy = folder.join("reasonblocks.service");
    std::fs::write(&copy, unit.replace("/usr/local/bin/rb", "/bin/true"))?;
    shell::read(shell::program("systemd-analyze")?.args(["verify", "--man=no"]).arg(&copy))
        .map(drop)
}

fn pytest(environment: &Environment, folders: &[&str]) -> Result<()> {
    shell::run(&mut tests_in(environment, folders)?).context(environment.name)
}

/// A pytest command for these folders, with the executable as `RB_BIN`.
fn tests_in(environment: &Environment, folders: &[&str]) -> Result<Command> {
    let rb = tools::rb()?;
    let mut pytest = environment.module("pytest")?;
    pytest.args(["-q", "-p", "no:cacheprovider"]).args(folders).env("RB_BIN", rb);
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(pytest)
}

fn docs() -> Result<()> {
    let mut docs = shell::cargo(&["doc", "--quiet", "--workspace", "--no-deps"])?;
    shell::run(docs.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Turns a non-empty list of problems into an error.
fn none(problems: &[String]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    bail!("\n      {}", problems.join("\n      "))
}
