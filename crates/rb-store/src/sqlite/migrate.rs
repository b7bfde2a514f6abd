//! Schema migration.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::error::with_context;
use crate::migration::{Migration, newest};
use crate::{Result, StoreError};

const OPERATION: &str = "migrating the database";

/// Applies the missing migrations in one transaction. Processes that open a new file at the same time are serialised.
pub(super) fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Result<()> {
    let known = newest(migrations);
    if version(connection)? == Some(known) {
        return Ok(());
    }
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)
        .map_err(with_context(OPERATION))?;
    let found = match version(&transaction)? {
        Some(found) if found > known => return Err(StoreError::TooNew { found, known }),
        Some(found) => found,
        None => begin(&transaction)?,
    };
    for migration in migrations.iter().filter(|migration| migration.version > found) {
        let applied = transaction.execute_batch(migration.sql).and_then(|()| {
            transaction.execute(
                "INSERT INTO migrations (version, name) VALUES (?1, ?2)",
                (migration.version, migration.name),
            )
        });
        applied.map_err(|error| StoreError::Failed {
            operation: OPERATION,
            cause: format!("migration {} ({}): {error}", migration.version, migration.name),
        })?;
    }
    transaction.commit().map_err(with_context(OPERATION))
}

/// Returns the schema version; `None` for a file without the table `migrations`.
fn version(connection: &Connection) -> Result<Option<u32>> {
    let is_ours = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'";
    let is_ours = connection
        .query_row(is_ours, (), |_| Ok(()))
        .optional()
        .map_err(with_context(OPERATION))?;
    if is_ours.is_none() {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM migrations";
    connection.query_row(newest, (), |row| row.get(0)).map(Some).map_err(with_context(OPERATION))
}

/// Creates the table `migrations` in an empty file; refuses a file with other tables.
fn begin(connection: &Connection) -> Result<u32> {
    let tables = "SELECT count(*) FROM sqlite_master";
    let tables: u32 =
        connection.query_row(tables, (), |row| row.get(0)).map_err(with_context(OPERATION))?;
    if tables > 0 {
        return Err(StoreError::Failed {
            operation: OPERATION,
            cause: "the file is the database of another program; use another file".to_owned(),
        });
    }
    let table = "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL)";
    connection.execute(table, ()).map_err(with_context(OPERATION))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::migrations;
    use crate::sql::Dialect;

    const GOOD: Migration = Migration {
        version: 2,
        name: "colours",
        sql: "ALTER TABLE settings ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';",
    };
    const BAD: Migration = Migration {
        version: 3,
        name: "broken",
        sql: "CREATE TABLE half (x); ALTER TABLE nowhere ADD COLUMN y;",
    };

    fn all() -> Vec<Migration> {
        migrations(Dialect::Sqlite)
    }

    fn first() -> Migration {
        all()[0]
    }

    /// Returns a database of schema 1 with one row.
    fn version_1() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[first()]).unwrap();
        connection.execute("INSERT INTO settings (name, value) VALUES ('a', 'b')", ()).unwrap();
        connection
    }

    fn text(connection: &Connection, sql: &str) -> String {
        connection.query_row(sql, (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_database_of_schema_1_is_migrated_and_keeps_its_rows() {
        let mut connection = version_1();
        for _ in 0..2 {
            migrate(&mut connection, &[first(), GOOD]).unwrap();
            assert_eq!(version(&connection).unwrap(), Some(2));
            assert_eq!(text(&connection, "SELECT name || value || colour FROM settings"), "abred");
            let names =
                "SELECT group_concat(name) FROM (SELECT name FROM migrations ORDER BY version)";
            assert_eq!(text(&connection, names), "first,colours");
        }
    }

    #[test]
    fn every_old_version_is_migrated_to_the_newest() {
        for from in 0..=all().len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection, &all()[..from]).unwrap();
            migrate(&mut connection, &all()).unwrap();
            assert_eq!(version(&connection).unwrap(), Some(newest(&all())));
        }
    }

    #[test]
    fn migration_counts_existing_steps() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &all()[..2]).unwrap();
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
        migrate(&mut connection, &all()).unwrap();
        let counted = "SELECT warn_steps || ',' || danger_steps FROM runs";
        assert_eq!(text(&connection, counted), "1,1");
        let shown = "SELECT group_concat(pattern || ' ' || steps) FROM (SELECT * FROM pattern_runs ORDER BY pattern)";
        assert_eq!(text(&connection, shown), "e1:p 2,e3:rule 1");
        connection.execute("DELETE FROM runs", ()).unwrap();
        assert!(connection.query_row("SELECT 1 FROM pattern_runs", (), |_| Ok(())).is_err());
    }

    #[test]
    fn a_failing_migration_changes_nothing() {
        let mut connection = version_1();
        let error = migrate(&mut connection, &[first(), GOOD, BAD]).unwrap_err().to_string();
        assert!(error.contains("migration 3 (broken)"), "{error}");
        assert_eq!(version(&connection).unwrap(), Some(1));
        assert_eq!(text(&connection, "SELECT name || value FROM settings"), "ab");
        assert!(connection.prepare("SELECT colour FROM settings").is_err());
        assert!(connection.prepare("SELECT x FROM half").is_err());
    }

    #[test]
    fn a_newer_schema_is_rejected() {
        let mut connection = version_1();
        migrate(&mut connection, &[first(), GOOD]).unwrap();
        let error = migrate(&mut connection, &[first()]).unwrap_err();
        assert!(matches!(error, StoreError::TooNew { found: 2, known: 1 }), "{error}");
    }
}
