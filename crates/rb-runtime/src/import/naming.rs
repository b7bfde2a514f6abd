//! Ids of recorded runs without an id, from their position in a file.

/// File name without folder and extensions.
pub fn file_stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    if stem.is_empty() { name } else { stem }
}

/// Id from file, line and position. `position` counts from 0 among the `count` runs of the line or file.
pub fn fallback_run_id(file: &str, line: Option<u64>, position: usize, count: usize) -> String {
    match (line, count) {
        (Some(line), 0 | 1) => format!("{file}:{line}"),
        (Some(line), _) => format!("{file}:{line}#{}", position + 1),
        (None, 0 | 1) => file.to_owned(),
        (None, _) => format!("{file}#{}", position + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_from_the_position_in_the_file() {
        for (file, expected) in [
            ("a/b/session.jsonl", "session"),
            ("session.json.gz", "session"),
            ("c:\\x\\run.traj", "run"),
            (".jsonl", ".jsonl"),
            ("plain", "plain"),
        ] {
            assert_eq!(file_stem(file), expected);
        }
        assert_eq!(fallback_run_id("f", None, 0, 1), "f");
        assert_eq!(fallback_run_id("f", None, 1, 2), "f#2");
        assert_eq!(fallback_run_id("f", Some(7), 0, 1), "f:7");
        assert_eq!(fallback_run_id("f", Some(7), 1, 2), "f:7#2");
    }
}
