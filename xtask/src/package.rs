//! The Python package: built as a wheel, installed where its tests run, and checked with the tools its users have.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::python::Environment;
use crate::{out, shell, tools};

/// The frameworks the package is for, at the versions it is tested with, and the tools that check it.
const ENVIRONMENT: Environment =
    Environment { name: "package", requirements: "python/requirements.txt", pip: &[] };

const STUBS: &str = "python/reasonblocks/_engine.pyi";

/// Everything that must hold of the package.
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

/// What `bench python` runs: the package as people install it, beside the public one.
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

/// What the tests may ask: the public packages, and a server if there is one.
fn environment(tests: &mut Command) -> Result<()> {
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("RB_REFERENCE_PYTHON", tools::REFERENCE.install()?);
    tests.env("RB_PUBLIC_SDK", public()?);
    let rb = tools::rb()?;
    if shell::succeeds(shell::program(&rb)?.args(["serve", "--help"])) {
        tests.env("RB_BIN", rb);
    } else {
        out::say("    without the tests against a server: this `rb` has none");
    }
    Ok(())
}

/// Where the public package is, so that a Python with the frameworks can import it.
fn public() -> Result<PathBuf> {
    let mut ask = shell::program(tools::PUBLIC.install()?)?;
    let path =
        shell::read(ask.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]))?;
    Ok(PathBuf::from(path.trim()))
}

/// The wheel as it is published: the compiler lays out the code after what `python/bench/train.py` made it do.
pub(crate) fn published() -> Result<PathBuf> {
    ENVIRONMENT.install()?;
    // It holds `llvm-profdata`, which brings the profiles together.
    let mut tools = shell::program("rustup")?;
    shell::run(tools.args(["component", "add", "llvm-tools"]))?;
    wheel(&["--profile", "wheel", "--pgo"])
}

fn wheel(options: &[&str]) -> Result<PathBuf> {
    let wheels = folder("wheels")?;
    let _ = std::fs::remove_dir_all(&wheels); // wheels of earlier builds, if there are any
    let mut build = maturin(&["build", "--quiet", "--out"])?;
    shell::run(build.arg(&wheels).args(options)).context("the package could not be built")?;
    let made = std::fs::read_dir(&wheels)?.next().context("maturin built no wheel")??;
    Ok(made.path())
}

fn install(python: &Path, wheel: &Path, options: &[&str]) -> Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let mut install = shell::program(python)?;
    install.args(pip).args(["--force-reinstall", "--upgrade"]).args(options);
    shell::read(install.arg(wheel)).map(drop)
}

/// The types of the compiled part are written from the Rust; what is kept in the package must be what is written now.
fn stubs() -> Result<()> {
    let fresh = folder("stubs")?;
    shell::run(maturin(&["generate-stubs", "--quiet", "--out"])?.arg(&fresh))?;
    let fresh = fresh.join("reasonblocks").join("_engine.pyi");
    let kept = shell::root()?.join(STUBS);
    if std::fs::read_to_string(&fresh)? != std::fs::read_to_string(&kept).unwrap_or_default() {
        bail!("{STUBS} is stale; copy {} over it", fresh.display());
    }
    Ok(())
}

fn maturin(args: &[&str]) -> Result<Command> {
    let mut maturin = tool("maturin")?;
    maturin.args(args);
    Ok(maturin)
}

/// A tool that finds its settings in the folder of the package.
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
