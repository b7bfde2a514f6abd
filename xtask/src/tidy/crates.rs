//! Rules about the crates of the workspace and their dependencies. A crate is a layer, not a feature.

use anyhow::{Context as _, Result};
use toml::Table;

use super::Repository;

/// One crate and the dependencies it may have.
struct Layer {
    name: &'static str,
    /// Crates of this workspace.
    internal: &'static [&'static str],
    external: External,
}

/// Allowed dependencies from outside the workspace.
enum External {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

/// Crates that open connections.
const NETWORK: &[&str] = &["axum", "hyper", "reqwest", "tokio", "tonic", "ureq"];
/// Crates that read flags or write to a terminal.
const TERMINAL: &[&str] =
    &["anstream", "anstyle", "clap", "crossterm", "indicatif", "terminal_size"];

/// All layers, lowest first.
///
/// A new crate needs a separate artifact, heavy dependencies, or a promise about dependencies it does not have. It is
/// added here and in ARCHITECTURE.md, with a decision.
const LAYERS: [Layer; 18] = [
    Layer {
        name: "rb-engine",
        internal: &[],
        external: External::Only(&["aho-corasick", "thiserror", "unicode-properties"]),
    },
    Layer { name: "rb-embed", internal: &[], external: External::AllBut(NETWORK) },
    Layer { name: "rb-wire", internal: &["rb-engine"], external: External::AllBut(NETWORK) },
    Layer {
        name: "rb-quality",
        internal: &["rb-engine", "rb-wire"],
        external: External::AllBut(NETWORK),
    },
    // The store waits for the disk and the database on tokio; it has no HTTP.
    Layer {
        name: "rb-store",
        internal: &[],
        external: External::AllBut(&["axum", "hyper", "reqwest", "tonic", "ureq"]),
    },
    // No HTTP server and no HTML.
    Layer {
        name: "rb-runtime",
        internal: &["rb-engine", "rb-embed", "rb-wire", "rb-quality", "rb-store"],
        external: External::AllBut(&["axum", "maud"]),
    },
    // Rendering only: no IO.
    Layer {
        name: "rb-view",
        internal: &["rb-engine", "rb-wire", "rb-store"],
        external: External::AllBut(NETWORK),
    },
    // Shared by the surfaces: no routes.
    Layer {
        name: "rb-http",
        internal: &["rb-store", "rb-runtime"],
        external: External::AllBut(TERMINAL),
    },
    Layer {
        name: "rb-gateway",
        internal: &["rb-engine", "rb-embed", "rb-wire", "rb-store", "rb-runtime", "rb-http"],
        external: External::AllBut(TERMINAL),
    },
    Layer {
        name: "rb-api",
        internal: &[
            "rb-engine",
            "rb-embed",
            "rb-wire",
            "rb-store",
            "rb-runtime",
            "rb-view",
            "rb-http",
        ],
        external: External::AllBut(TERMINAL),
    },
    Layer {
        name: "rb-dashboard",
        internal: &[
            "rb-engine",
            "rb-embed",
            "rb-wire",
            "rb-store",
            "rb-runtime",
            "rb-view",
            "rb-http",
        ],
        external: External::AllBut(TERMINAL),
    },
    Layer {
        name: "rb-server",
        internal: &[
            "rb-engine",
            "rb-embed",
            "rb-wire",
            "rb-store",
            "rb-runtime",
            "rb-view",
            "rb-http",
            "rb-gateway",
            "rb-api",
            "rb-dashboard",
        ],
        external: External::AllBut(TERMINAL),
    },
    // Test support, see `DEV_ONLY`.
    Layer {
        name: "rb-testkit",
        internal: &[
            "rb-engine",
            "rb-embed",
            "rb-wire",
            "rb-store",
            "rb-runtime",
            "rb-view",
            "rb-http",
            "rb-gateway",
            "rb-api",
            "rb-dashboard",
            "rb-server",
        ],
        external: External::AllBut(TERMINAL),
    },
    Layer {
        name: "rb-py",
        internal: &["rb-engine", "rb-embed", "rb-wire"],
        external: External::AllBut(NETWORK),
    },
    // Builds the tokio runtime of `rb serve`; the server is in `rb-server`.
    Layer {
        name: "rb",
        internal: &[
            "rb-engine",
            "rb-embed",
            "rb-wire",
            "rb-quality",
            "rb-store",
            "rb-runtime",
            "rb-view",
            "rb-http",
            "rb-gateway",
            "rb-api",
            "rb-dashboard",
            "rb-server",
        ],
        external: External::AllBut(&["axum", "hyper", "reqwest", "tonic"]),
    },
    // Measurements; no crate of the product may depend on them.
    Layer {
        name: "lab-bench",
        internal: &["rb-engine", "rb-embed", "rb-store"],
        external: External::AllBut(&[]),
    },
    Layer {
        name: "lab-quality",
        internal: &["rb-engine", "rb-embed", "rb-quality", "rb-wire"],
        external: External::AllBut(NETWORK),
    },
    // Builds and tests the product without compiling it into itself.
    Layer { name: "xtask", internal: &[], external: External::AllBut(NETWORK) },
];

/// Crates that may appear only under `dev-dependencies`.
const DEV_ONLY: [&str; 1] = ["rb-testkit"];

/// Crates that the standard library has replaced.
const SUPERSEDED: [&str; 3] = ["lazy_static", "num_cpus", "once_cell"];

pub(super) fn set(repository: &Repository) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let found: Vec<String> = manifests(repository).map(|(name, _)| name).collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    for layer in &LAYERS {
        if !found.contains(&layer.name) {
            problems.push(format!("{} is missing", layer.name));
        }
    }
    for name in &found {
        if !LAYERS.iter().any(|layer| layer.name == *name) {
            problems.push(format!("{name} is not in the list of xtask/src/tidy/crates.rs"));
        }
    }
    let lines = repository.file("ARCHITECTURE.md")?.text.lines();
    let rows = lines.filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut rows: Vec<&str> = rows.map(|(name, _)| name).filter(|name| is_internal(name)).collect();
    rows.sort_unstable();
    let mut names = found;
    names.retain(|name| *name != "xtask");
    names.sort_unstable();
    if rows != names {
        problems.push(format!(
            "the crate table of ARCHITECTURE.md lists {rows:?}, the workspace has {names:?}"
        ));
    }
    Ok(problems)
}

pub(super) fn uses(repository: &Repository) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (name, path) in manifests(repository) {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else { continue };
        let manifest = repository.toml(path)?;
        for (used, _) in dependencies(&manifest, &["dependencies", "build-dependencies"]) {
            let used = used.as_str();
            let is_allowed = if is_internal(used) {
                layer.internal.contains(&used)
            } else {
                match layer.external {
                    External::Only(allowed) => allowed.contains(&used),
                    External::AllBut(denied) => !denied.contains(&used),
                }
            };
            if DEV_ONLY.contains(&used) {
                problems.push(format!("{name}: {used} may only be a dev-dependency"));
            } else if !is_allowed {
                problems.push(format!("{name} may not depend on {used}"));
            }
        }
    }
    Ok(problems)
}

pub(super) fn inheritance(repository: &Repository) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (name, path) in manifests(repository) {
        let manifest = repository.toml(path)?;
        if !inherits(manifest.get("lints")) {
            problems.push(format!("{name} must have `[lints] workspace = true`"));
        }
        if manifest.contains_key("features") {
            problems.push(format!("{name} has features; every build must have the same content"));
        }
        let package = manifest.get("package").and_then(|p| p.as_table()).context("a package")?;
        for key in ["edition", "rust-version", "license", "publish"] {
            if !inherits(package.get(key)) {
                problems.push(format!("{name} must have `{key}.workspace = true`"));
            }
        }
        let kinds = ["dependencies", "build-dependencies", "dev-dependencies"];
        for (used, value) in dependencies(&manifest, &kinds) {
            if !inherits(Some(&value)) {
                problems.push(format!("{name} must take {used} from the workspace"));
            }
            if SUPERSEDED.contains(&used.as_str()) {
                problems.push(format!("{name} uses {used}, which the standard library replaces"));
            }
        }
    }
    Ok(problems)
}

/// Names of all packages of the workspace, with the paths of their manifests.
fn manifests(repository: &Repository) -> impl Iterator<Item = (String, &str)> {
    repository.ending("Cargo.toml").filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        let name = match folder.split_once('/') {
            None if folder == "xtask" => folder.to_owned(),
            Some(("crates", name)) if !name.contains('/') => name.to_owned(),
            Some(("lab", name)) => format!("lab-{name}"),
            _ => return None,
        };
        Some((name, file.path.as_str()))
    })
}

/// Names a package of this workspace.
fn is_internal(name: &str) -> bool {
    name == "rb" || name.starts_with("rb-") || name.starts_with("lab-")
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

/// Has `workspace = true`.
fn inherits(value: Option<&toml::Value>) -> bool {
    value.and_then(|value| value.get("workspace")?.as_bool()) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_only_its_dependencies() {
        let cases = [
            ("rb-engine", "[dependencies]\ntokio = {}", "rb-engine may not depend on tokio"),
            ("rb-engine", "[dependencies]\nthiserror = {}", ""),
            ("rb-runtime", "[dependencies]\nmaud = {}", "rb-runtime may not depend on maud"),
            ("rb-runtime", "[dependencies]\nrb-store = {}\ntokio = {}", ""),
            ("rb-view", "[dependencies]\nmaud = {}\nrb-wire = {}", ""),
            ("rb-view", "[dependencies]\ntokio = {}", "rb-view may not depend on tokio"),
            ("rb-api", "[dependencies]\nrb-gateway = {}", "rb-api may not depend on rb-gateway"),
            ("rb-dashboard", "[dependencies]\nrb-view = {}\nrb-runtime = {}", ""),
            (
                "rb-server",
                "[dependencies]\nrb-testkit = {}",
                "rb-server: rb-testkit may only be a dev-dependency",
            ),
            ("rb-server", "[dev-dependencies]\nrb-testkit = {}", ""),
            ("xtask", "[dependencies]\nrb-engine = {}", "xtask may not depend on rb-engine"),
            ("lab-bench", "[dependencies]\nrb-engine = {}\naxum = {}", ""),
            ("rb", "[dependencies]\nlab-bench = {}", "rb may not depend on lab-bench"),
            (
                "rb-store",
                "[target.'cfg(unix)'.dependencies]\nx = { package = \"hyper\" }",
                "rb-store may not depend on hyper",
            ),
        ];
        for (name, manifest, expected) in cases {
            let folder = match name.strip_prefix("lab-") {
                Some(name) => format!("lab/{name}"),
                None if name == "xtask" => name.to_owned(),
                None => format!("crates/{name}"),
            };
            let repository = Repository::of(&[(&format!("{folder}/Cargo.toml"), manifest)]);
            assert_eq!(uses(&repository).unwrap().join("\n"), expected, "{name}: {manifest}");
        }
    }

    #[test]
    fn every_crate_of_the_list_must_exist() {
        let crates: Vec<&str> = LAYERS.map(|layer| layer.name).into_iter().collect();
        let rows: Vec<String> = crates.iter().map(|name| format!("| `{name}` | x |\n")).collect();
        let table = rows.concat();
        let path = |name: &&str| match name.strip_prefix("lab-") {
            Some(name) => format!("lab/{name}/Cargo.toml"),
            None if *name == "xtask" => "xtask/Cargo.toml".to_owned(),
            None => format!("crates/{name}/Cargo.toml"),
        };
        let paths: Vec<String> = crates.iter().map(path).collect();
        let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        files.push(("ARCHITECTURE.md", &table));
        assert_eq!(set(&Repository::of(&files)).unwrap(), Vec::<String>::new());
        let engine = files.remove(0);
        let problems = set(&Repository::of(&files)).unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(problems[0], "rb-engine is missing");
        files.extend([engine, ("crates/rb-other/Cargo.toml", "")]);
        let problems = set(&Repository::of(&files)).unwrap();
        assert!(problems[0].starts_with("rb-other is not in the list"), "{problems:?}");
    }
}
