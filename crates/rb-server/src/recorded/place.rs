//! What to call a recorded run that has no name of its own: by where it stands.

/// A file's name without folder and endings.
pub fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    if stem.is_empty() { name } else { stem }
}

/// A run's place: in a file, or in a line of it; there it is one `of` so many, counted from 0.
pub fn place(file: &str, line: Option<u64>, at: usize, of: usize) -> String {
    match (line, of) {
        (Some(line), 0 | 1) => format!("{file}:{line}"),
        (Some(line), _) => format!("{file}:{line}#{}", at + 1),
        (None, 0 | 1) => file.to_owned(),
        (None, _) => format!("{file}#{}", at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_by_where_they_stand() {
        for (file, called) in [
            ("a/b/session.jsonl", "session"),
            ("session.json.gz", "session"),
            ("c:\\x\\run.traj", "run"),
            (".jsonl", ".jsonl"),
            ("plain", "plain"),
        ] {
            assert_eq!(stem(file), called);
        }
        assert_eq!(place("f", None, 0, 1), "f");
        assert_eq!(place("f", None, 1, 2), "f#2");
        assert_eq!(place("f", Some(7), 0, 1), "f:7");
        assert_eq!(place("f", Some(7), 1, 2), "f:7#2");
    }
}
