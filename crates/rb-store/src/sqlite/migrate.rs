//! Brings a database to the schema this program knows, or says why it does not.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::fault::while_doing;
use crate::migration::Migration;
use crate::{Result, StoreError};

/// Every migration, oldest first. What was released is never changed.
pub(super) const ALL: &[Migration] = &[
    Migration { name: "first", sql: include_str!("../../migrations/sqlite/0001_first.sql") },
    Migration {
        name: "conversations",
        sql: include_str!("../../migrations/sqlite/0002_conversations.sql"),
    },
    Migration { name: "versions", sql: include_str!("../../migrations/sqlite/0003_versions.sql") },
    Migration { name: "reading", sql: include_str!("../../migrations/sqlite/0004_reading.sql") },
    Migration { name: "library", sql: include_str!("../../migrations/sqlite/0005_library.sql") },
    Migration { name: "waiting", sql: include_str!("../../migrations/sqlite/0006_waiting.sql") },
    Migration { name: "answers", sql: include_str!("../../migrations/sqlite/0007_answers.sql") },
];

const DOING: &str = "bringing the database up to date";

/// Applies what is missing, all of it or nothing. Two processes that open a new file at once do it one after the other.
pub(super) fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Result<()> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if version(connection)? == Some(known) {
        return Ok(());
    }
    let transaction =
        Transaction::new(connection, TransactionBehavior::Immediate).map_err(while_doing(DOING))?;
    let found = match version(&transaction)? {
        Some(found) if found > known => return Err(StoreError::TooNew { found, known }),
        Some(found) => found,
        None => begin(&transaction)?,
    };
    for (version, migration) in (1..=known).zip(migrations).filter(|(at, _)| *at > found) {
        let applied = transaction.execute_batch(migration.sql).and_then(|()| {
            transaction.execute(
                "INSERT INTO migrations (version, name) VALUES (?1, ?2)",
                (version, migration.name),
            )
        });
        applied.map_err(|error| StoreError::Failed {
            doing: DOING,
            cause: format!("migration {version} ({}): {error}", migration.name),
        })?;
    }
    transaction.commit().map_err(while_doing(DOING))
}

/// The version of the schema, or none in a file that has none of ours.
fn version(connection: &Connection) -> Result<Option<u32>> {
    let is_ours = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'";
    let is_ours =
        connection.query_row(is_ours, (), |_| Ok(())).optional().map_err(while_doing(DOING))?;
    if is_ours.is_none() {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM migrations";
    connection.query_row(newest, (), |row| row.get(0)).map(Some).map_err(while_doing(DOING))
}

/// Prepares an empty file; a file that holds somebody else's tables is left alone.
fn begin(connection: &Connection) -> Result<u32> {
    let tables = "SELECT count(*) FROM sqlite_master";
    let tables: u32 =
        connection.query_row(tables, (), |row| row.get(0)).map_err(while_doing(DOING))?;
    if tables > 0 {
        return Err(StoreError::Failed {
            doing: DOING,
            cause: "the file is the database of another program: name another file".to_owned(),
        });
    }
    let table = "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL)";
    connection.execute(table, ()).map_err(while_doing(DOING))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::check_files;

    const FIRST: Migration = Migration { name: ALL[0].name, sql: ALL[0].sql };
    const GOOD: Migration = Migration {
        name: "colours",
        sql: "ALTER TABLE settings ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';",
    };
    const BAD: Migration = Migration {
        name: "broken",
        sql: "CREATE TABLE half (x); ALTER TABLE nowhere ADD COLUMN y;",
    };

    /// As the first version left it, with something in it.
    fn version_1() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST]).unwrap();
        connection.execute("INSERT INTO settings (name, value) VALUES ('a', 'b')", ()).unwrap();
        connection
    }

    fn text(connection: &Connection, sql: &str) -> String {
        connection.query_row(sql, (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_database_of_version_1_is_brought_up_to_date_and_keeps_its_rows() {
        let mut connection = version_1();
        for _ in 0..2 {
            migrate(&mut connection, &[FIRST, GOOD]).unwrap();
            assert_eq!(version(&connection).unwrap(), Some(2));
            assert_eq!(text(&connection, "SELECT name || value || colour FROM settings"), "abred");
            let names =
                "SELECT group_concat(name) FROM (SELECT name FROM migrations ORDER BY version)";
            assert_eq!(text(&connection, names), "first,colours");
        }
    }

    #[test]
    fn every_version_there_was_leads_to_the_newest() {
        for from in 0..=ALL.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection, &ALL[..from]).unwrap();
            migrate(&mut connection, ALL).unwrap();
            assert_eq!(version(&connection).unwrap(), Some(u32::try_from(ALL.len()).unwrap()));
        }
    }

    #[test]
    fn what_was_stored_before_is_counted_too() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &ALL[..2]).unwrap();
        let run = "INSERT INTO runs (id, org, run_id, project, started_ms, seen_ms, outcome_class, experiment_id, arm,
            score_peak, agent_name, model, framework, codebase, task_profile, parent, task)
            VALUES (7, 'a', 'r', '', 5, 5, 3, '', '', 0.7, '', '', '', '', '', '', '')";
        connection.execute(run, ()).unwrap();
        for (index, score, shown) in [
            (0, 0.7, Some(r#"["[e3:rule]","[e1:p]"]"#)),
            (1, 0.4, Some(r#"["[e1:p]","[e9:no]","[e1:]","words"]"#)),
            (2, 0.1, None),
        ] {
            let step = "INSERT INTO steps (run, step_index, at_ms, total_score, cost_usd, tokens_total, tokens_input,
                tokens_output, cache_read, cache_write, injected, model, is_error, input_is_structured, injections,
                project, user_input, thought) VALUES (7, ?1, 5, ?2, 0, 0, 0, 0, 0, 0, 0, '', 0, 0, ?3, '', '', '')";
            connection.execute(step, (index, score, shown)).unwrap();
        }
        migrate(&mut connection, ALL).unwrap();
        let counted = "SELECT warn_steps || ',' || danger_steps FROM runs";
        assert_eq!(text(&connection, counted), "1,1");
        let shown = "SELECT group_concat(pattern || ' ' || steps) FROM (SELECT * FROM pattern_runs ORDER BY pattern)";
        assert_eq!(text(&connection, shown), "e1:p 2,e3:rule 1");
        connection.execute("DELETE FROM runs", ()).unwrap();
        assert!(connection.query_row("SELECT 1 FROM pattern_runs", (), |_| Ok(())).is_err());
    }

    #[test]
    fn a_migration_that_fails_leaves_everything_as_it_was() {
        let mut connection = version_1();
        let told = migrate(&mut connection, &[FIRST, GOOD, BAD]).unwrap_err().to_string();
        assert!(told.contains("migration 3 (broken)"), "{told}");
        assert_eq!(version(&connection).unwrap(), Some(1));
        assert_eq!(text(&connection, "SELECT name || value FROM settings"), "ab");
        assert!(connection.prepare("SELECT colour FROM settings").is_err());
        assert!(connection.prepare("SELECT x FROM half").is_err());
    }

    #[test]
    fn a_schema_of_tomorrow_is_refused() {
        let mut connection = version_1();
        migrate(&mut connection, &[FIRST, GOOD]).unwrap();
        let told = migrate(&mut connection, &[FIRST]).unwrap_err();
        assert!(matches!(told, StoreError::TooNew { found: 2, known: 1 }), "{told}");
    }

    #[test]
    fn the_files_are_the_list() {
        check_files("sqlite", ALL);
    }
}
