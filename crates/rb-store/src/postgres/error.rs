//! Conversion of PostgreSQL errors, with advice and by whether a retry may succeed.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::sql::ValueError;

/// Error of a connection, a statement or a stored value.
#[derive(Debug, thiserror::Error)]
pub(super) enum DbError {
    #[error("{}", message(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("{}", no_connection(.0))]
    Connection(#[from] PoolError),
    #[error("{0}")]
    Value(#[from] ValueError),
    /// The version of a run is not the expected one.
    #[error("the run has changed since it was read")]
    VersionConflict,
    /// The server did not answer in time.
    #[error("no response within {0} s")]
    TimedOut(u64),
}

/// Result of a statement.
pub(super) type Sql<T> = Result<T, DbError>;

impl DbError {
    /// Returns true for a deadlock or serialization failure, after which the transaction is repeated.
    pub(super) fn is_deadlock_or_serialization_failure(&self) -> bool {
        let codes = [&SqlState::T_R_DEADLOCK_DETECTED, &SqlState::T_R_SERIALIZATION_FAILURE];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Returns true if the same call may succeed later: the database is unreachable, full or overloaded.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Connection(_) | Self::TimedOut(_) => true,
            Self::Value(_) | Self::VersionConflict => false,
            // Without an SQL state the connection itself failed.
            Self::Database(error) => error.code().map_or_else(
                || {
                    error.is_closed()
                        || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
                },
                |code| self.is_deadlock_or_serialization_failure() || is_transient_code(code),
            ),
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) | Self::Connection(PoolError::Backend(error)) => error.code(),
            Self::Connection(_) | Self::Value(_) | Self::VersionConflict | Self::TimedOut(_) => {
                None
            }
        }
    }

    /// Converts to the error type of the store.
    pub(super) fn with_context(self, operation: &'static str) -> StoreError {
        if matches!(self, Self::VersionConflict) {
            return StoreError::VersionConflict;
        }
        if let Some(advice) = self.code().and_then(advice) {
            return StoreError::Failed { operation, cause: format!("{advice} ({self})") };
        }
        if self.is_transient() {
            StoreError::Unavailable(format!("{operation}: {self}"))
        } else {
            StoreError::Failed { operation, cause: self.to_string() }
        }
    }
}

/// Returns true for the classes connection, resources, operator intervention and system, and for lock timeouts.
fn is_transient_code(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "53" | "57" | "58") || *code == SqlState::LOCK_NOT_AVAILABLE
}

/// Returns advice for errors whose cause must be fixed first.
fn advice(code: &SqlState) -> Option<&'static str> {
    match code {
        code if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            Some("authentication failed; check user and password in `database_url`")
        }
        code if *code == SqlState::INVALID_CATALOG_NAME => {
            Some("no such database; create it, or name another in `database_url`")
        }
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            Some("permission denied; the user must own the database or its schema")
        }
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            Some("the database is read-only; use the primary, not a standby")
        }
        _ => None,
    }
}

/// Returns the message of the database without its detail, which may quote values.
fn message(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(database), _) => format!("{} ({})", database.message(), database.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

fn no_connection(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => format!("no connection: {}", message(error)),
        PoolError::Timeout(_) => "timed out waiting for a connection".to_owned(),
        other @ (PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_)) => {
            format!("no connection: {other}")
        }
    }
}

/// Error for a terminated worker task, which is a defect.
pub(super) fn stopped(operation: &'static str) -> StoreError {
    StoreError::Unavailable(format!("{operation}: the store is closed"))
}
