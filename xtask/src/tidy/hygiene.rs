//! Rules about locked dependencies: registry, bans and licences. The lists are in `deny.toml`, in the format of cargo-deny.

use anyhow::{Context as _, Result};
use serde_json::Value;
use toml::Table;

use super::{Repository, licence};
use crate::{out, shell};

const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn sources(repository: &Repository) -> Result<Vec<String>> {
    let elsewhere = |package: &Table| {
        let source = text(package, "source");
        (!source.is_empty() && source != PUBLIC_REGISTRY)
            .then(|| format!("{} comes from {source}", text(package, "name")))
    };
    Ok(locked(repository)?.iter().filter_map(elsewhere).collect())
}

pub(super) fn bans(repository: &Repository) -> Result<Vec<String>> {
    let deny = repository.toml("deny.toml")?;
    let bans =
        deny.get("bans").and_then(|bans| bans.get("deny")?.as_array()).context("bans.deny")?;
    let locked = locked(repository)?;
    let mut problems = Vec::new();
    for ban in bans.iter().filter_map(|ban| ban.as_table()) {
        let name = text(ban, "name");
        if locked.iter().any(|package| text(package, "name") == name) {
            problems.push(format!("{name} is banned; use {}", text(ban, "use-instead")));
        }
    }
    Ok(problems)
}

/// Checks the licences of all dependencies. A stage of `cargo xtask test` rather than a test, because `cargo metadata` may
/// need network access. Crates locked in several versions are printed and do not fail.
pub(crate) fn licences() -> Result<Vec<String>> {
    let repository = Repository::read()?;
    let deny = repository.toml("deny.toml")?;
    let allowed =
        deny.get("licenses").and_then(|l| l.get("allow")?.as_array()).context("licenses.allow")?;
    let allowed: Vec<&str> = allowed.iter().filter_map(|licence| licence.as_str()).collect();

    let metadata =
        shell::read(&mut shell::cargo(&["metadata", "--format-version", "1", "--locked"])?)?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let mut problems = Vec::new();
    for package in packages {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        if !licence::allows(licence, &allowed) {
            problems.push(format!("{name}: its licence `{licence}` is not allowed in deny.toml"));
        }
    }
    let mut names: Vec<&str> =
        packages.iter().filter_map(|package| package["name"].as_str()).collect();
    names.sort_unstable();
    let twice = |name: &&str| names.iter().filter(|other| *other == name).count() > 1;
    let mut several: Vec<&str> = names.iter().copied().filter(twice).collect();
    several.dedup();
    if !several.is_empty() {
        out::line(&format!("    locked in several versions: {}", several.join(", ")));
    }
    Ok(problems)
}

fn locked(repository: &Repository) -> Result<Vec<Table>> {
    let lock = repository.toml("Cargo.lock")?;
    let packages =
        lock.get("package").and_then(|packages| packages.as_array()).context("packages")?;
    Ok(packages.iter().filter_map(|package| package.as_table().cloned()).collect())
}

fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table.get(key).and_then(|value| value.as_str()).unwrap_or_default()
}
