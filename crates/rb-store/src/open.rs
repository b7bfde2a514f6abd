//! Opens a store by URL.

use std::path::Path;
use std::sync::Arc;

use crate::{Result, Store, StoreError, postgres, sqlite};

const WRITE: &str = "write `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`";

/// Opens the store at a URL; creates it if it is missing, and migrates its schema.
///
/// `sqlite:PATH` is a file, `sqlite::memory:` a database that is lost when it is dropped, `postgres://…` a
/// PostgreSQL.
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    // Errors quote only the scheme: the rest of the URL may contain a password.
    match url.split_once(':') {
        Some(("sqlite", "" | "//")) => {
            Err(refused("`sqlite:` has no path; write `sqlite:PATH`".to_owned()))
        }
        Some(("sqlite", ":memory:")) => Ok(Arc::new(sqlite::Sqlite::in_memory().await?)),
        Some(("sqlite", path)) => {
            let path = Path::new(path.strip_prefix("//").unwrap_or(path));
            Ok(Arc::new(sqlite::Sqlite::open(path).await?))
        }
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(postgres::Postgres::open(url).await?)),
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Err(refused(format!("unknown scheme `{scheme}:`; {WRITE}")))
        }
        Some(_) | None => Err(refused(format!("database URL without a scheme; {WRITE}"))),
    }
}

fn refused(cause: String) -> StoreError {
    StoreError::Failed { operation: "opening the store", cause }
}
