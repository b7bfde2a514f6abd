//! The Python package: built as a wheel, installed into the test environment, linted, type-checked and tested.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::python::Environment;
use crate::{binary, shell, tools};

/// The supported frameworks at their tested versions, and the linters.
const ENVIRONMENT: Environment =
    Environment { name: "package", requirements: "python/requirements.txt", pip: &[] };

const STUBS: &str = "python/reasonblocks/_engine.pyi";

/// The stage `python` of `cargo xtask test`.
pub(crate) fn check() -> Result<()> {
    let python = ENVIRONMENT.install()?;
    install(&python, &wheel(&[])?, &[])?;
    stubs()?;
    shell::run(tool("ruff")?.args(["check", "--quiet"]))?;
    shell::run(tool("ruff")?.args(["format", "--check", "--quiet"]))?;
    shell::run(&mut tool("mypy")?)?;
    let mut pytest = ENVIRONMENT.module("pytest")?;
    pytest.args(["-q", "-p", "no:cacheprovider", "-c", "python/pyproject.toml", "python/tests"]);
    environment(&mut pytest)?;
    shell::run(&mut pytest)
}

/// `cargo xtask bench python`: the published wheel beside the public package.
pub(crate) fn bench() -> Result<()> {
    let python = ENVIRONMENT.install()?;
    let ours = folder("site")?;
    install(&python, &published()?, &["--target", &ours.to_string_lossy()])?;
    let mut bench = shell::program(&python)?;
    shell::run(&mut shell::cargo(&["build", "--release", "--quiet", "--package", "rb"])?)?;
    let rb = shell::target()?.join("release").join("rb");
    bench.arg("python/bench/overhead.py").args([&ours, &public()?, &rb]);
    shell::run(bench.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Passes the public packages and the `rb` executable to the tests.
fn environment(tests: &mut Command) -> Result<()> {
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("RB_REFERENCE_PYTHON", tools::REFERENCE.install()?);
    tests.env("RB_PUBLIC_SDK", public()?);
    tests.env("RB_BIN", tools::rb()?);
    Ok(())
}

/// The folder from which the public package can be imported.
fn public() -> Result<PathBuf> {
    let mut python = shell::program(tools::PUBLIC.install()?)?;
    let path =
        shell::read(python.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]))?;
    Ok(PathBuf::from(path.trim()))
}

/// Builds the published wheel with profile-guided optimisation; `python/bench/train.py` is the training load.
pub(crate) fn published() -> Result<PathBuf> {
    ENVIRONMENT.install()?;
    binary::install_llvm_tools()?;
    wheel(&["--profile", "wheel", "--pgo"])
}

fn wheel(options: &[&str]) -> Result<PathBuf> {
    let wheels = folder("wheels")?;
    let _ = std::fs::remove_dir_all(&wheels); // missing in the first build
    let mut build = maturin(&["build", "--quiet", "--out"])?;
    shell::run(build.arg(&wheels).args(options)).context("maturin build failed")?;
    let made = std::fs::read_dir(&wheels)?.next().context("maturin built no wheel")??;
    Ok(made.path())
}

fn install(python: &Path, wheel: &Path, options: &[&str]) -> Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let mut install = shell::program(python)?;
    install.args(pip).args(["--force-reinstall", "--upgrade"]).args(options);
    shell::read(install.arg(wheel)).map(drop)
}

/// Compares the committed type stubs with those generated from the Rust code.
fn stubs() -> Result<()> {
    let fresh = folder("stubs")?;
    shell::run(maturin(&["generate-stubs", "--quiet", "--out"])?.arg(&fresh))?;
    let fresh = fresh.join("reasonblocks").join("_engine.pyi");
    let kept = shell::root()?.join(STUBS);
    if std::fs::read_to_string(&fresh)? != std::fs::read_to_string(&kept).unwrap_or_default() {
        bail!("stale file: {STUBS}; copy {} over it", fresh.display());
    }
    Ok(())
}

fn maturin(args: &[&str]) -> Result<Command> {
    let mut maturin = tool("maturin")?;
    maturin.args(args);
    Ok(maturin)
}

/// A tool that runs in the folder of the package, where its configuration is.
fn tool(name: &str) -> Result<Command> {
    let mut tool = ENVIRONMENT.module(name)?;
    tool.current_dir(shell::root()?.join("python"));
    Ok(tool)
}

fn folder(name: &str) -> Result<PathBuf> {
    let folder = shell::target()?.join("python").join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
