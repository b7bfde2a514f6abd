//! Files that a step reads or writes, and line ranges in them.

/// A line range, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lines {
    /// The first line.
    pub from: u32,
    /// The last line; [`u32::MAX`] is the end of the file.
    pub to: u32,
}

impl Lines {
    /// Reports whether both ranges have a line in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

/// A file, folder or page that a step reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRef {
    /// The path after `normalise`.
    pub path: String,
    /// The lines that are read, if known.
    pub lines: Option<Lines>,
}

impl FileRef {
    /// Reports whether both paths may name the same file: one may be absolute and the other relative.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let (long, short) =
            if self.path.len() >= other.path.len() { (self, other) } else { (other, self) };
        long.path == short.path
            || (long.path.starts_with('/')
                && !short.path.starts_with('/')
                && long
                    .path
                    .strip_suffix(short.path.as_str())
                    .is_some_and(|rest| rest.ends_with('/')))
    }

    /// Reports whether the file is in a folder for temporary files.
    pub fn is_temporary(&self) -> bool {
        ["/tmp/", "/var/tmp/", "/private/tmp/", "/dev/"]
            .iter()
            .any(|dir| self.path.starts_with(dir))
    }
}

/// Maximum length of a path.
const PATH_BYTES_MAX: usize = 240;

/// Normalises a path: resolves it against `base` if it is relative, and removes `./`, `..` and doubled slashes.
pub(super) fn normalise(base: &str, raw: &str) -> String {
    let raw = crate::analysis::text::prefix(raw.trim(), PATH_BYTES_MAX);
    if raw.contains("://") {
        return raw.trim_end_matches('/').to_owned();
    }
    let rooted = raw.starts_with('/');
    let homed = raw.starts_with('~') || raw.starts_with('$');
    let mut path = String::with_capacity(raw.len() + base.len() + 1);
    let first = if rooted || homed { "" } else { base };
    if rooted || first.starts_with('/') {
        path.push('/');
    }
    for part in first.split('/').chain(raw.split('/')) {
        match part {
            "" | "." => {}
            ".." if path == "/" => {}
            ".." if path.len() > 1 && !path.ends_with("..") => {
                let end =
                    path.rfind('/').map_or(0, |at| at.max(usize::from(path.starts_with('/'))));
                path.truncate(end);
            }
            other => {
                if !path.is_empty() && !path.ends_with('/') {
                    path.push('/');
                }
                path.push_str(other);
            }
        }
    }
    if path.is_empty() {
        path.push('.');
    }
    path
}

/// Reports whether a word is a path: it contains a slash or ends like a file name.
pub(super) fn looks_like_path(word: &str) -> bool {
    // Most words have neither, so this check is first.
    if !word.contains('/') && !has_extension(word) {
        return false;
    }
    if word.len() > PATH_BYTES_MAX || word.starts_with('-') || word.contains("://") {
        return false;
    }
    let is_foreign = |byte: u8| byte <= b' ' || b"=;(){}<>|\"'`,".contains(&byte);
    !word.bytes().any(is_foreign)
}

/// Matches `name.ext` with a short extension that contains a letter.
pub(super) fn has_extension(word: &str) -> bool {
    let Some((stem, extension)) = word.rsplit_once('.') else { return false };
    !stem.is_empty()
        && (1..=6).contains(&extension.len())
        && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        && extension.bytes().any(|b| b.is_ascii_alphabetic())
        && !stem.ends_with('.')
}

/// Reports whether a file is named like a test in one of the common languages.
pub(super) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    has_extension(name)
        && (stem.starts_with("test_")
            || stem.ends_with("_test")
            || matches!(stem, "test" | "tests" | "runtests" | "run_tests")
            || name.contains(".test.")
            || name.contains(".spec."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (base, raw, want) in [
            ("", "./src//a.rs", "src/a.rs"),
            ("", "src/../b.rs", "b.rs"),
            ("", "../b.rs", "../b.rs"),
            ("", "../../b.rs", "../../b.rs"),
            ("/repo", "a.py", "/repo/a.py"),
            ("/repo/sub", "../a.py", "/repo/a.py"),
            ("/repo", "/etc/x", "/etc/x"),
            ("sub", "a", "sub/a"),
            ("/repo", "~/a", "~/a"),
            ("", ".", "."),
            ("/", "..", "/"),
            ("", "https://a.b/c/", "https://a.b/c"),
        ] {
            assert_eq!(normalise(base, raw), want, "{base} {raw}");
        }
    }

    #[test]
    fn absolute_and_relative_paths_may_be_the_same_file() {
        let file = |path: &str| FileRef { path: path.to_owned(), lines: None };
        assert!(file("/repo/src/a.py").is_same_file(&file("src/a.py")));
        assert!(file("a.py").is_same_file(&file("/repo/src/a.py")));
        assert!(!file("src/a.py").is_same_file(&file("a.py")));
        assert!(!file("/repo/ba.py").is_same_file(&file("a.py")));
        assert!(file("/tmp/a").is_temporary() && !file("/repo/tmp/a").is_temporary());
    }

    #[test]
    fn paths_and_test_files_are_recognised() {
        for (word, path, test) in [
            ("src/a.rs", true, false),
            ("a.py", true, false),
            ("tests/test_a.py", true, true),
            ("a_test.go", true, true),
            ("x.spec.ts", true, true),
            ("v1.2", false, false),
            ("3.14", false, false),
            ("hello", false, false),
            ("a=b/c", false, false),
            ("-rf", false, false),
            ("test_repro.py", true, true),
            ("http://a.b/c", false, false),
        ] {
            assert_eq!((looks_like_path(word), is_test_file(word)), (path, test), "{word}");
        }
    }

    #[test]
    fn ranges_overlap() {
        let lines = |from, to| Lines { from, to };
        assert!(lines(1, 10).overlaps(lines(10, 20)) && !lines(1, 9).overlaps(lines(10, u32::MAX)));
    }
}
