//! Rules about Markdown documents: relative links and the paths in CONTRIBUTING's table exist.

use std::path::Path;

use anyhow::Result;

use super::Repository;

/// Reports relative links without a target.
pub(super) fn links(repository: &Repository) -> Vec<String> {
    let mut problems = Vec::new();
    for file in repository.ending(".md") {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for link in file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') && !exists(repository, folder, target) {
                problems.push(format!("{}: the link {link} has no target", file.path));
            }
        }
    }
    problems
}

/// Reports paths that CONTRIBUTING's table names and the repository does not have.
///
/// A path is in back-ticks and has a slash. From the first `<placeholder>` on, only its folder is checked.
pub(super) fn contributing(repository: &Repository) -> Result<Vec<String>> {
    let rows =
        repository.file("CONTRIBUTING.md")?.text.lines().filter(|line| line.starts_with('|'));
    let mut problems = Vec::new();
    for path in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        let fixed = match path.split_once('<') {
            Some((before, _)) => before.rsplit_once('/').map_or("", |(folder, _)| folder),
            None => path,
        };
        let is_path = path.contains('/') && !path.contains(' ');
        let folders = [Path::new(""), Path::new("crates")];
        if is_path && !folders.iter().any(|folder| exists(repository, folder, fixed)) {
            problems.push(format!("CONTRIBUTING.md: {path} does not exist"));
        }
    }
    Ok(problems)
}

fn exists(repository: &Repository, folder: &Path, target: &str) -> bool {
    let path = folder.join(target);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.iter().filter_map(|part| part.to_str()) {
        match part {
            ".." => _ = parts.pop(),
            "." => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    let inside = format!("{path}/");
    repository.files.iter().any(|file| file.path == path || file.path.starts_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_targets() {
        let page = "[a](../src/a.rs#L1) [b](https://example.com) [c](#part) [d](b.md)";
        let repository = Repository::of(&[("docs/page.md", page), ("src/a.rs", "")]);
        assert_eq!(links(&repository), ["docs/page.md: the link b.md has no target"]);
    }

    #[test]
    fn paths_of_the_table_exist() {
        let table =
            "| `rb/src/<name>.rs`, `rb/src/cli.rs`, `cargo x/y z`, `cli` | `no/such`, `no/<x>` |";
        let files = [("CONTRIBUTING.md", table), ("crates/rb/src/cli.rs", "")];
        let expected =
            ["CONTRIBUTING.md: no/such does not exist", "CONTRIBUTING.md: no/<x> does not exist"];
        assert_eq!(contributing(&Repository::of(&files)).unwrap(), expected);
    }
}
