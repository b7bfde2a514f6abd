//! Brings a database to the schema this program knows, or says why it does not. Several nodes may try at once.

use deadpool_postgres::Client;

use super::fault::Fault;
use crate::migration::Migration;
use crate::{Result, StoreError};

/// Every migration, oldest first. What was released is never changed.
pub(super) const ALL: &[Migration] = &[
    Migration { name: "first", sql: include_str!("../../migrations/postgres/0001_first.sql") },
    Migration { name: "told", sql: include_str!("../../migrations/postgres/0002_told.sql") },
    Migration { name: "reading", sql: include_str!("../../migrations/postgres/0003_reading.sql") },
    Migration { name: "library", sql: include_str!("../../migrations/postgres/0004_library.sql") },
    Migration { name: "waiting", sql: include_str!("../../migrations/postgres/0005_waiting.sql") },
    Migration { name: "answers", sql: include_str!("../../migrations/postgres/0006_answers.sql") },
];

const DOING: &str = "bringing the database up to date";

/// The lock that nodes hold while they do this: any number that nobody else uses, here the letters of our name.
const LOCK: i64 = 0x7265_6173_6F6E_626C;

/// Applies what is missing, all of it or nothing. Whoever comes second waits, and then finds nothing to do.
pub(super) async fn migrate(client: &mut Client, migrations: &[Migration]) -> Result<()> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if version(client).await? == Some(known) {
        return Ok(());
    }
    let failed = |error| Fault::Database(error).while_doing(DOING);
    let transaction = client.transaction().await.map_err(failed)?;
    // Another node may take longer than a lock is usually waited for; the lock goes with the transaction.
    let wait = format!(
        "SET LOCAL lock_timeout = '10min'; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({LOCK})"
    );
    transaction.batch_execute(&wait).await.map_err(failed)?;
    let found = match version(&transaction).await? {
        Some(found) if found > known => return Err(StoreError::TooNew { found, known }),
        Some(found) => found,
        None => begin(&transaction).await?,
    };
    for (version, migration) in (1..=known).zip(migrations).filter(|(at, _)| *at > found) {
        let note = format!(
            "INSERT INTO migrations (version, name) VALUES ({version}, '{}')",
            migration.name
        );
        for sql in [migration.sql, note.as_str()] {
            transaction.batch_execute(sql).await.map_err(|error| StoreError::Failed {
                doing: DOING,
                cause: format!(
                    "migration {version} ({}): {}",
                    migration.name,
                    Fault::Database(error)
                ),
            })?;
        }
    }
    transaction.commit().await.map_err(failed)
}

/// The version of the schema, or none in a database that has none of ours.
async fn version(client: &impl deadpool_postgres::GenericClient) -> Result<Option<u32>> {
    let failed = |error| Fault::Database(error).while_doing(DOING);
    // Not by `to_regclass`: that may remember from before the lock that there is no such table.
    let is_ours = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema()
        AND tablename = 'migrations')";
    let is_ours: bool = client.query_one(is_ours, &[]).await.map_err(failed)?.get(0);
    if !is_ours {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM migrations";
    let newest: i64 = client.query_one(newest, &[]).await.map_err(failed)?.get(0);
    Ok(Some(u32::try_from(newest).unwrap_or(u32::MAX)))
}

/// Prepares an empty schema; one that holds somebody else's tables is left alone.
async fn begin(client: &impl deadpool_postgres::GenericClient) -> Result<u32> {
    let failed = |error| Fault::Database(error).while_doing(DOING);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    let tables: i64 = client.query_one(tables, &[]).await.map_err(failed)?.get(0);
    if tables > 0 {
        return Err(StoreError::Failed {
            doing: DOING,
            cause:
                "the database holds the tables of another program: create one for us, or give the \
                    user a schema of its own"
                    .to_owned(),
        });
    }
    let table = "CREATE TABLE migrations (version bigint PRIMARY KEY, name text NOT NULL)";
    client.batch_execute(table).await.map_err(failed)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::check_files;

    #[test]
    fn the_files_are_the_list() {
        check_files("postgres", ALL);
    }
}
