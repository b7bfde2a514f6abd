//! Rules about the crates: which there are, and what each may use. A crate is a layer, not a feature.

use anyhow::{Context as _, Result};
use toml::Table;

use super::Repository;

/// One crate and its promise.
struct Room {
    name: &'static str,
    /// The crates of ours it may use.
    ours: &'static [&'static str],
    others: Others,
}

/// Which crates of others it may use.
enum Others {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const NETWORK: &[&str] = &["axum", "hyper", "reqwest", "tokio", "tonic", "ureq"];

/// Every crate. A new one needs an artifact of its own, heavy dependencies of its own, or a promise about what
/// it does not use; it is added here, in ARCHITECTURE.md, and with a decision.
const ROOMS: [Room; 8] = [
    Room {
        name: "rb-engine",
        ours: &[],
        others: Others::Only(&["aho-corasick", "thiserror", "unicode-properties"]),
    },
    Room { name: "rb-embed", ours: &[], others: Others::AllBut(NETWORK) },
    Room { name: "rb-wire", ours: &["rb-engine"], others: Others::AllBut(NETWORK) },
    Room { name: "rb-quality", ours: &["rb-engine"], others: Others::AllBut(NETWORK) },
    // It waits for the disk on tokio, and knows no HTTP.
    Room {
        name: "rb-store",
        ours: &[],
        others: Others::AllBut(&["axum", "hyper", "reqwest", "tonic", "ureq"]),
    },
    // No flags and no terminal.
    Room {
        name: "rb-server",
        ours: &["rb-engine", "rb-embed", "rb-wire", "rb-store"],
        others: Others::AllBut(&["anstream", "anstyle", "clap", "indicatif", "terminal_size"]),
    },
    // The runtime of `rb serve` is built here; what is served is not.
    Room {
        name: "rb-py",
        ours: &["rb-engine", "rb-embed", "rb-wire"],
        others: Others::AllBut(NETWORK),
    },
    Room {
        name: "rb",
        ours: &["rb-engine", "rb-embed", "rb-wire", "rb-quality", "rb-store", "rb-server"],
        others: Others::AllBut(&["axum", "hyper", "reqwest", "tonic"]),
    },
];

/// In the standard library by now.
const SUPERSEDED: [&str; 3] = ["lazy_static", "num_cpus", "once_cell"];

pub(super) fn set(repository: &Repository) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let found: Vec<&str> = manifests(repository).map(|(name, _)| name).collect();
    for room in &ROOMS {
        if !found.contains(&room.name) {
            complaints.push(format!("crates/{} is missing", room.name));
        }
    }
    for name in &found {
        if !ROOMS.iter().any(|room| room.name == *name) {
            complaints
                .push(format!("crates/{name} is not in the list of xtask/src/tidy/crates.rs"));
        }
    }
    let rows = repository.file("ARCHITECTURE.md")?.text.lines();
    let rows: Vec<&str> = rows.filter_map(|line| line.strip_prefix("| `rb")).collect();
    let rows: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("rb{}", row.split_once('`')?.0))).collect();
    let names: Vec<String> = ROOMS.iter().map(|room| room.name.to_owned()).collect();
    if rows != names {
        complaints.push(format!("the table of ARCHITECTURE.md lists {rows:?}, the rule {names:?}"));
    }
    Ok(complaints)
}

pub(super) fn uses(repository: &Repository) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (name, path) in manifests(repository) {
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else { continue };
        let manifest = repository.toml(path)?;
        for (used, _) in dependencies(&manifest, &["dependencies", "build-dependencies"]) {
            let may = if used.starts_with("rb-") {
                room.ours.contains(&used.as_str())
            } else {
                match room.others {
                    Others::Only(few) => few.contains(&used.as_str()),
                    Others::AllBut(banned) => !banned.contains(&used.as_str()),
                }
            };
            if !may {
                complaints.push(format!("{name} may not use {used}"));
            }
        }
    }
    Ok(complaints)
}

pub(super) fn inheritance(repository: &Repository) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let xtask = ("xtask", "xtask/Cargo.toml");
    for (name, path) in manifests(repository).chain([xtask]) {
        let manifest = repository.toml(path)?;
        if !says_workspace(manifest.get("lints")) {
            complaints.push(format!("{name} must say `[lints] workspace = true`"));
        }
        if manifest.contains_key("features") {
            complaints
                .push(format!("{name} has features; what is built must not depend on who asks"));
        }
        let package = manifest.get("package").and_then(|p| p.as_table()).context("a package")?;
        for key in ["edition", "rust-version", "license", "publish"] {
            if !says_workspace(package.get(key)) {
                complaints.push(format!("{name} must say `{key}.workspace = true`"));
            }
        }
        let kinds = ["dependencies", "build-dependencies", "dev-dependencies"];
        for (used, value) in dependencies(&manifest, &kinds) {
            if !says_workspace(Some(&value)) {
                complaints.push(format!("{name} must take {used} from the workspace"));
            }
            if SUPERSEDED.contains(&used.as_str()) {
                complaints.push(format!("{name} uses {used}, which the standard library replaces"));
            }
        }
    }
    Ok(complaints)
}

/// The crates by folder name, with their manifests.
fn manifests(repository: &Repository) -> impl Iterator<Item = (&str, &str)> {
    repository.ending("/Cargo.toml").filter_map(|file| {
        let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        (!name.contains('/')).then_some((name, file.path.as_str()))
    })
}

/// Names and values of the dependencies of these kinds, on any platform.
fn dependencies(manifest: &Table, kinds: &[&str]) -> Vec<(String, toml::Value)> {
    let platforms = manifest.get("target").and_then(|target| target.as_table()).into_iter();
    let platforms =
        platforms.flat_map(|target| target.values().filter_map(|value| value.as_table()));
    let tables: Vec<&Table> = std::iter::once(manifest).chain(platforms).collect();
    let mut all = Vec::new();
    for table in tables {
        for listed in kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()) {
            for (name, value) in listed {
                let package = value.get("package").and_then(|package| package.as_str());
                all.push((package.unwrap_or(name).to_owned(), value.clone()));
            }
        }
    }
    all
}

fn says_workspace(value: Option<&toml::Value>) -> bool {
    value.and_then(|value| value.get("workspace")?.as_bool()) == Some(true)
}
