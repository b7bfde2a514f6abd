//! Numbered schema migrations of all backends.
//!
//! The same change has the same number and name on every backend. A backend leaves out the numbers that do not concern
//! it, such as the event table on SQLite.

use crate::sql::Dialect;

/// One schema change and the schema version that it leads to.
#[derive(Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) version: u32,
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// File of a migration and its statements on SQLite and PostgreSQL.
type File = (&'static str, Option<&'static str>, Option<&'static str>);

macro_rules! sql {
    ($backend:literal, $name:literal) => {
        Some(include_str!(concat!("../migrations/", $backend, "/", $name, ".sql")))
    };
}

macro_rules! migration {
    ($name:literal, both) => {
        ($name, sql!("sqlite", $name), sql!("postgres", $name))
    };
    ($name:literal, sqlite) => {
        ($name, sql!("sqlite", $name), None)
    };
    ($name:literal, postgres) => {
        ($name, None, sql!("postgres", $name))
    };
}

/// All migrations, oldest first. The statements of a released migration never change.
const FILES: &[File] = &[
    migration!("0001_first", both),
    migration!("0002_conversations", sqlite),
    migration!("0003_versions", sqlite),
    migration!("0004_reading", both),
    migration!("0005_library", both),
    migration!("0006_waiting", both),
    migration!("0007_answers", both),
    migration!("0008_node_events", postgres),
    migration!("0009_operator_messages", both),
    migration!("0010_step_state", both),
];

/// Returns the migrations of a backend, oldest first.
pub(crate) fn migrations(dialect: Dialect) -> Vec<Migration> {
    let migration = |(file, sqlite, postgres): &File| {
        let (version, name) = file.split_once('_')?;
        let sql = match dialect {
            Dialect::Sqlite => *sqlite,
            Dialect::Postgres => *postgres,
        };
        Some(Migration { version: version.parse().ok()?, name, sql: sql? })
    };
    FILES.iter().filter_map(migration).collect()
}

/// Returns the newest schema version in a list that is sorted by version.
pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listed_migrations_match_the_files() {
        for (directory, dialect) in [("sqlite", Dialect::Sqlite), ("postgres", Dialect::Postgres)] {
            let directory = format!("{}/migrations/{directory}", env!("CARGO_MANIFEST_DIR"));
            let files = std::fs::read_dir(directory).unwrap();
            let mut files: Vec<String> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            files.sort_unstable();
            let listed = migrations(dialect);
            let names: Vec<String> =
                listed.iter().map(|one| format!("{:04}_{}.sql", one.version, one.name)).collect();
            assert_eq!(files, names);
            for migration in listed {
                let number = format!("-- {:04}: ", migration.version);
                assert!(migration.sql.starts_with(&number), "{}", migration.name);
            }
        }
    }

    #[test]
    fn numbers_are_consecutive() {
        let numbers: Vec<&str> = FILES.iter().map(|(file, ..)| &file[..4]).collect();
        let expected: Vec<String> = (1..=FILES.len()).map(|at| format!("{at:04}")).collect();
        assert_eq!(numbers, expected);
    }
}
