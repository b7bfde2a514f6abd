//! Numbered schema migrations, shared by all backends.
//!
//! The same change has the same number and name on every backend. A backend leaves out the numbers that do not concern
//! it, such as the event table on SQLite.

/// One schema change and the schema version that it leads to.
pub(crate) struct Migration {
    pub(crate) version: u32,
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

impl Migration {
    pub(crate) const fn new(version: u32, name: &'static str, sql: &'static str) -> Self {
        Self { version, name, sql }
    }
}

/// Returns the newest schema version in a list that is sorted by version.
pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{postgres, sqlite};

    /// Checks that a directory under `migrations/` contains exactly the listed files and that each states its number.
    fn check_files(directory: &str, listed: &[Migration]) {
        let directory = format!("{}/migrations/{directory}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(directory).unwrap();
        let mut files: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort_unstable();
        let names: Vec<String> =
            listed.iter().map(|one| format!("{:04}_{}.sql", one.version, one.name)).collect();
        assert_eq!(files, names);
        for (file, migration) in files.iter().zip(listed) {
            assert!(migration.sql.starts_with(&format!("-- {}: ", &file[..4])), "{file}");
        }
    }

    #[test]
    fn the_listed_migrations_match_the_files() {
        check_files("sqlite", sqlite::MIGRATIONS);
        check_files("postgres", postgres::MIGRATIONS);
    }

    #[test]
    fn the_same_change_has_the_same_number_on_both_backends() {
        for one in sqlite::MIGRATIONS {
            for other in postgres::MIGRATIONS {
                assert_eq!(one.version == other.version, one.name == other.name, "{}", one.name);
            }
        }
        assert_eq!(newest(sqlite::MIGRATIONS), newest(postgres::MIGRATIONS));
    }
}
