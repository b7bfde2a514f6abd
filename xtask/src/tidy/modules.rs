//! Rule about modules: the graph of a crate's top-level modules has no cycle.
//!
//! An edge is a `use` or an inline path that begins with `crate`, `super` or `self`; test modules are not part of the graph.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Repository};

/// Names of modules that only tests use.
const TEST_MODULES: [&str; 3] = ["tests", "trial", "test_util"];

/// Edges between the top-level modules of one crate.
type Graph = BTreeMap<String, BTreeSet<String>>;

pub(super) fn acyclic(repository: &Repository) -> Vec<String> {
    let folders: BTreeSet<&str> = repository.ending(".rs").filter_map(source_folder).collect();
    let cycles = folders.into_iter().flat_map(|folder| {
        let cycles = cycles(&graph(repository, folder)).into_iter();
        cycles.map(move |cycle| format!("{folder}: {} depend on each other", cycle.join(", ")))
    });
    cycles.collect()
}

/// The `src` folder of the crate a file belongs to.
fn source_folder(file: &File) -> Option<&str> {
    let at = file.path.find("/src/")?;
    Some(&file.path[..at + "/src".len()])
}

/// Path of the module in a file, relative to the crate: `a/mod.rs` is `[a]`, `lib.rs` is `[]`.
fn module_path<'a>(folder: &str, file: &'a str) -> Option<Vec<&'a str>> {
    let path = file.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let mut path: Vec<&str> = path.split('/').collect();
    if matches!(path.last(), Some(&("mod" | "lib" | "main"))) {
        path.pop();
    }
    Some(path)
}

fn graph(repository: &Repository, folder: &str) -> Graph {
    let modules = repository.ending(".rs").filter_map(|file| {
        let path = module_path(folder, &file.path)?;
        (!path.iter().any(|part| TEST_MODULES.contains(part))).then_some((path, file))
    });
    let modules: Vec<(Vec<&str>, &File)> = modules.collect();
    let top: BTreeSet<&str> =
        modules.iter().filter_map(|(path, _)| path.first().copied()).collect();
    let mut graph = Graph::new();
    for (path, file) in &modules {
        // The root declares the modules; its own items are re-exports.
        let Some(from) = path.first() else { continue };
        for reference in references(production_code(&file.text)) {
            let target = resolve(path, &reference);
            if let Some(to) = target.first().filter(|to| top.contains(to.as_str()) && to != from) {
                graph.entry((*from).to_owned()).or_default().insert(to.clone());
            }
        }
    }
    graph
}

/// The text before an inline test module. A declaration (`mod tests;`) may precede other code, so it ends nothing.
fn production_code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// A path as seen from the root of the crate.
fn resolve(module: &[&str], reference: &[String]) -> Vec<String> {
    let mut base: Vec<String> = module.iter().map(|part| (*part).to_owned()).collect();
    let mut rest = reference;
    match rest.first().map(String::as_str) {
        Some("crate") => return rest[1..].to_vec(),
        Some("self") => rest = &rest[1..],
        _ => {}
    }
    while let Some((first, others)) = rest.split_first()
        && first == "super"
    {
        base.pop();
        rest = others;
    }
    base.extend(rest.iter().cloned());
    base
}

/// Every path in the code that begins with `crate`, `super` or `self::`.
fn references(source: &str) -> Vec<Vec<String>> {
    let code: Vec<&str> =
        source.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for keyword in ["crate", "super", "self"] {
        for (at, _) in code.match_indices(keyword) {
            let starts = !code[..at].ends_with(|c: char| is_name(c) || c == ':');
            if starts && code[at + keyword.len()..].starts_with("::") {
                expand(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Expands the path tree at the start of `code` (`a::{b, c::d}`) and returns what follows it.
fn expand<'a>(code: &'a str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let depth = prefix.len();
    let mut rest = code.trim_start();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            loop {
                rest = rest.trim_start();
                if rest.is_empty() {
                    break;
                }
                if let Some(after) = rest.strip_prefix('}') {
                    rest = after;
                    break;
                }
                let before = rest.len();
                rest = expand(rest, prefix, found);
                // Renames (`as name`) and separators.
                rest = rest.trim_start_matches(|c: char| c != ',' && c != '}' && c != ';');
                rest = rest.strip_prefix(',').unwrap_or(rest);
                if rest.len() == before || rest.starts_with(';') {
                    break;
                }
            }
            break;
        }
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        if end == 0 {
            found.push(prefix.clone());
            break;
        }
        prefix.push(rest[..end].to_owned());
        rest = &rest[end..];
        let Some(more) = rest.strip_prefix("::") else {
            found.push(prefix.clone());
            break;
        };
        rest = more;
    }
    prefix.truncate(depth);
    rest
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Strongly connected components with more than one module. Graphs have some dozen nodes, so reachability is enough.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|from| (from.as_str(), reachable(graph, from))).collect();
    let mut done = BTreeSet::new();
    let mut cycles = Vec::new();
    for (from, to) in &reach {
        if done.contains(from) || !to.contains(from) {
            continue;
        }
        let back = |node: &&&str| reach.get(**node).is_some_and(|there| there.contains(from));
        let cycle: Vec<String> = to.iter().filter(back).map(|node| (*node).to_owned()).collect();
        done.extend(to.iter().filter(back).copied());
        cycles.push(cycle);
    }
    cycles
}

fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut queue: Vec<&str> = graph.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(node) = queue.pop() {
        if seen.insert(node) {
            queue.extend(graph.get(node).into_iter().flatten().map(String::as_str));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(acyclic(&Repository::of(files)), expected);
    }

    #[test]
    fn paths_are_expanded() {
        let cases = [
            ("use crate::{a, b::{c, d as e}};", "crate::a crate::b::c crate::b::d"),
            (
                "use crate::{\n    a::{self, B},\n    c::*,\n};",
                "crate::a::self crate::a::B crate::c",
            ),
            ("let x = super::y::z(1);", "super::y::z"),
            ("// use crate::a;\nlet x = self.crate_name;", ""),
            ("use std::fmt; let a = my::crate_x::y;", ""),
        ];
        for (source, expected) in cases {
            let found: Vec<String> =
                references(source).iter().map(|path| path.join("::")).collect();
            assert_eq!(found.join(" "), expected, "{source}");
        }
    }

    #[test]
    fn a_cycle_breaks_the_rule() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b; mod c;"),
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b/mod.rs", "mod inner;"),
            ("crates/x/src/b/inner.rs", "fn f() { super::super::c::g() }"),
            ("crates/x/src/c.rs", "use crate::a::A;"),
        ];
        check(&files, &["crates/x/src: a, b, c depend on each other"]);
        check(&files[..4], &[]);
    }

    #[test]
    fn code_after_the_declaration_of_a_test_module_counts() {
        let files = [
            ("crates/x/src/a.rs", "//! A.\n#[cfg(test)]\nmod tests;\nuse crate::b::B;"),
            ("crates/x/src/b.rs", "use crate::a::A;"),
        ];
        check(&files, &["crates/x/src: a, b depend on each other"]);
    }

    #[test]
    fn tests_may_use_any_module() {
        let files = [
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b.rs", "//! B.\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
            ("crates/x/src/b/tests.rs", "use crate::a::A;"),
        ];
        check(&files, &[]);
    }
}
