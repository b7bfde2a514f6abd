//! What PostgreSQL complains about, in words that say what to do, and sorted by whether trying again may help.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// What went wrong on the way to the database, in it, or with what it gave.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", told(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("{}", no_connection(.0))]
    Connection(#[from] PoolError),
    #[error("what is stored cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A run is not as the caller expected it.
    #[error("the run was changed by somebody else")]
    Moved,
    /// The network or the server is so slow that nobody should wait for it any longer.
    #[error("no answer within {0} seconds")]
    Late(u64),
}

/// What a statement gives.
pub(super) type Sql<T> = Result<T, Fault>;

impl Fault {
    /// Two transactions stood in each other's way: doing it again is all there is to do.
    pub(super) fn is_collision(&self) -> bool {
        let codes = [&SqlState::T_R_DEADLOCK_DETECTED, &SqlState::T_R_SERIALIZATION_FAILURE];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// The database is away, full or overworked for the moment: the same call may succeed later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Late(_) => true,
            Self::Json(_) | Self::Moved => false,
            // Without a code it is no complaint of the database: the connection is gone.
            Self::Database(error) => error.code().map_or_else(
                || {
                    error.is_closed()
                        || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
                },
                |code| self.is_collision() || passes(code),
            ),
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) | Self::Connection(PoolError::Backend(error)) => error.code(),
            Self::Connection(_) | Self::Json(_) | Self::Moved | Self::Late(_) => None,
        }
    }

    /// In the words of the store.
    pub(super) fn while_doing(self, doing: &'static str) -> StoreError {
        if matches!(self, Self::Moved) {
            return StoreError::Moved;
        }
        if let Some(advice) = self.code().and_then(advice) {
            return StoreError::Failed { doing, cause: format!("{advice} ({self})") };
        }
        if self.may_pass() {
            StoreError::Unavailable(format!("{doing}: {self}"))
        } else {
            StoreError::Failed { doing, cause: self.to_string() }
        }
    }
}

/// Classes of codes: connection, resources, operator's intervention, system; and waiting in vain for a lock.
fn passes(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "53" | "57" | "58") || *code == SqlState::LOCK_NOT_AVAILABLE
}

/// Where somebody has to do something first.
fn advice(code: &SqlState) -> Option<&'static str> {
    match code {
        code if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            Some("the database does not let us in: check user and password in `database_url`")
        }
        code if *code == SqlState::INVALID_CATALOG_NAME => {
            Some("there is no such database: create it, or name another in `database_url`")
        }
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            Some("the user may not do this: it needs to own the database or its schema")
        }
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            Some("the database may only be read: name the primary, not a standby")
        }
        _ => None,
    }
}

/// The database's own sentence; what it adds as detail may quote values, and those are not for logs.
fn told(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(database), _) => format!("{} ({})", database.message(), database.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

fn no_connection(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => format!("no connection: {}", told(error)),
        PoolError::Timeout(_) => "no connection became free in time".to_owned(),
        other @ (PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_)) => {
            format!("no connection: {other}")
        }
    }
}

/// The task that answers is gone, which only a defect can bring about.
pub(super) fn stopped(doing: &'static str) -> StoreError {
    StoreError::Unavailable(format!("{doing}: the store has stopped"))
}
