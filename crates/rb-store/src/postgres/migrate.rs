//! Schema migration, safe to run on several nodes at the same time.

use deadpool_postgres::Client;

use super::error::DbError;
use crate::migration::{Migration, newest};
use crate::{Result, StoreError};

/// Renumbers a database that was migrated when PostgreSQL had separate migration numbers: migrations 3 to 6 become
/// 4 to 7, and the former migration 2 is removed, because migration 8 replaces its table. Such a database is
/// recognised by the name of its second migration.
const RENUMBER: &str = "DO $$ BEGIN
    IF EXISTS (SELECT FROM migrations WHERE version = 2 AND name = 'told') THEN
        DELETE FROM migrations WHERE version = 2;
        UPDATE migrations SET version = -version - 1 WHERE version BETWEEN 3 AND 6;
        UPDATE migrations SET version = -version WHERE version < 0;
    END IF;
END $$";

const OPERATION: &str = "migrating the database";

/// Key of the advisory lock that serialises migrations; the letters `reasonbl`.
const LOCK: i64 = 0x7265_6173_6F6E_626C;

/// Applies the missing migrations in one transaction. Other nodes wait and then have nothing to do.
pub(super) async fn migrate(client: &mut Client, migrations: &[Migration]) -> Result<()> {
    let known = newest(migrations);
    if version(client).await? == Some(known) {
        return Ok(());
    }
    let failed = |error| DbError::Database(error).with_context(OPERATION);
    let transaction = client.transaction().await.map_err(failed)?;
    // A migration may take longer than the usual lock timeout. The lock is released with the transaction.
    let wait = format!(
        "SET LOCAL lock_timeout = '10min'; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({LOCK})"
    );
    transaction.batch_execute(&wait).await.map_err(failed)?;
    let found = match version(&transaction).await? {
        Some(_) => {
            transaction.batch_execute(RENUMBER).await.map_err(failed)?;
            version(&transaction).await?.unwrap_or_default()
        }
        None => begin(&transaction).await?,
    };
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    for migration in migrations.iter().filter(|migration| migration.version > found) {
        let Migration { version, name, sql } = migration;
        let record = format!("INSERT INTO migrations (version, name) VALUES ({version}, '{name}')");
        for sql in [*sql, record.as_str()] {
            transaction.batch_execute(sql).await.map_err(|error| StoreError::Failed {
                operation: OPERATION,
                cause: format!("migration {version} ({name}): {}", DbError::Database(error)),
            })?;
        }
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the schema version; `None` for a schema without the table `migrations`.
async fn version(client: &impl deadpool_postgres::GenericClient) -> Result<Option<u32>> {
    let failed = |error| DbError::Database(error).with_context(OPERATION);
    // Not `to_regclass`, whose result may be cached from before the lock was acquired.
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

/// Creates the table `migrations` in an empty schema; refuses a schema with other tables.
async fn begin(client: &impl deadpool_postgres::GenericClient) -> Result<u32> {
    let failed = |error| DbError::Database(error).with_context(OPERATION);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    let tables: i64 = client.query_one(tables, &[]).await.map_err(failed)?.get(0);
    if tables > 0 {
        return Err(StoreError::Failed {
            operation: OPERATION,
            cause: "the schema has tables of another program; use an empty database or schema"
                .to_owned(),
        });
    }
    let table = "CREATE TABLE migrations (version bigint PRIMARY KEY, name text NOT NULL)";
    client.batch_execute(table).await.map_err(failed)?;
    Ok(0)
}
