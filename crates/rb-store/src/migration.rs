//! What the schemas of all backends are made of: numbered files, each applied once.

/// One step of a schema; its version is its place in the list, counted from one.
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// Checks that a folder under `migrations/` holds the list and nothing else, and that every file says its number.
#[cfg(test)]
pub(crate) fn check_files(folder: &str, listed: &[Migration]) {
    let folder = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    let names: Vec<String> =
        (1..).zip(listed).map(|(at, one)| format!("{at:04}_{}.sql", one.name)).collect();
    assert_eq!(files, names);
    for (file, migration) in files.iter().zip(listed) {
        assert!(migration.sql.starts_with(&format!("-- {}: ", &file[..4])), "{file}");
    }
}
