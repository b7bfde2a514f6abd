//! From an address to a store: the one place that knows which databases there are.

use std::path::Path;
use std::sync::Arc;

use crate::{Result, Store, StoreError, postgres, sqlite};

const WRITE: &str = "write `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`";

/// Opens the store at an address, making it if there is none and bringing its schema up to date.
///
/// `sqlite:PATH` is a file; `sqlite::memory:` forgets everything when it is dropped. `postgres://…` is a PostgreSQL.
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    // Only the scheme is ever repeated in an error: the rest of an address may hold a password.
    match url.split_once(':') {
        Some(("sqlite", "" | "//")) => {
            Err(refused("`sqlite:` is followed by no file: write `sqlite:PATH`".to_owned()))
        }
        Some(("sqlite", ":memory:")) => Ok(Arc::new(sqlite::Sqlite::in_memory().await?)),
        Some(("sqlite", path)) => {
            let path = Path::new(path.strip_prefix("//").unwrap_or(path));
            Ok(Arc::new(sqlite::Sqlite::open(path).await?))
        }
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(postgres::Postgres::open(url).await?)),
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Err(refused(format!("`{scheme}:` is no database that this program knows: {WRITE}")))
        }
        Some(_) | None => Err(refused(format!("the address names no kind of database: {WRITE}"))),
    }
}

fn refused(cause: String) -> StoreError {
    StoreError::Failed { doing: "opening the store", cause }
}
