//! Rules about forbidden words. They are concatenated here so that this file does not contain them.

use super::{File, Repository};

const UNDONE: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("#[ign", "ore"),
];

pub(super) fn undone(repository: &Repository) -> Vec<String> {
    let by_hand = |file: &&File| is_written_by_hand(&file.path);
    repository
        .files
        .iter()
        .filter(by_hand)
        .flat_map(|file| {
            lines_with(file, &|line| UNDONE.into_iter().find(|word| has_word(line, word)))
        })
        .collect()
}

/// User names that may appear in example paths.
const EXAMPLE_USERS: [&str; 7] = ["alice", "bob", "dev", "me", "runner", "user", "you"];

pub(super) fn machines(repository: &Repository) -> Vec<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let places = [repository.root.to_string_lossy().into_owned(), home];
    let places: Vec<String> =
        places.into_iter().filter(|place| place.len() > 1).map(|p| p + "/").collect();
    let named = |line: &str| -> Option<&'static str> {
        if places.iter().any(|place| starts_path(line, place)) {
            return Some("a path of this machine");
        }
        let homes = [concat!("/ho", "me/"), concat!("/Us", "ers/")];
        let someone = homes.iter().flat_map(|root| line.split(root).skip(1)).any(|rest| {
            let name =
                rest.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
            !name.is_empty() && !EXAMPLE_USERS.contains(&name)
        });
        someone.then_some("a home directory")
    };
    let by_hand = |file: &&File| is_written_by_hand(&file.path);
    repository.files.iter().filter(by_hand).flat_map(|file| lines_with(file, &named)).collect()
}

pub(super) fn registries(repository: &Repository) -> Vec<String> {
    let marks = [
        concat!("[sou", "rce."),
        concat!("[regis", "tries"),
        concat!(" regis", "try = "),
        concat!("--index", "-url"),
        concat!("--extra-index", "-url"),
    ];
    let named = |line: &str| marks.into_iter().find(|mark| format!(" {line}").contains(mark));
    let by_hand = |file: &&File| is_written_by_hand(&file.path);
    repository.files.iter().filter(by_hand).flat_map(|file| lines_with(file, &named)).collect()
}

/// Returns true for files written by hand, as opposed to data and generated files.
fn is_written_by_hand(path: &str) -> bool {
    [".rs", ".toml", ".md", ".py", ".sh", ".yml", ".svg", "/run"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

fn lines_with<'a>(file: &File, find: &dyn Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(at, line)| find(line).map(|what| format!("{}:{}: {what}", file.path, at + 1)))
        .collect()
}

/// Returns true if `line` contains `word` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_part) && !(line[at + word.len()..].starts_with(is_part))
    })
}

/// Returns true if `line` contains the path `place` and not as a part of a longer path.
fn starts_path(line: &str, place: &str) -> bool {
    line.match_indices(place)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/\\".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_places_are_whole() {
        assert!(has_word("// NOTE: later", "NOTE"));
        assert!(!has_word("NOTES", "NOTE"));
        assert!(starts_path("see /srv/a/b", "/srv/a/"));
        assert!(!starts_path("see x/srv/a/b", "/srv/a/"));
    }
}
