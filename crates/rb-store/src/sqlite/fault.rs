//! What SQLite complains about, in words that say what to do, and sorted by whether trying again may help.

use rusqlite::{Error, ErrorCode};

use crate::StoreError;

/// A run was changed by somebody else: an error of ours, on the way that errors of SQLite go.
#[derive(Debug, thiserror::Error)]
#[error("the run was changed by somebody else")]
pub(super) struct Moved;

pub(super) fn is_moved(error: &Error) -> bool {
    matches!(error, Error::ToSqlConversionFailure(cause) if cause.is::<Moved>())
}

/// Puts an error of the database into the words of the store.
pub(super) fn fault(doing: &'static str, error: &Error) -> StoreError {
    if is_moved(error) {
        return StoreError::Moved;
    }
    let Some(code) = error.sqlite_error_code() else {
        return StoreError::Failed { doing, cause: error.to_string() };
    };
    match advice(code) {
        Advice::TryAgain(why) => StoreError::Unavailable(format!("{doing}: {why} ({error})")),
        Advice::Repair(why) => StoreError::Failed { doing, cause: format!("{why} ({error})") },
        Advice::None => StoreError::Failed { doing, cause: error.to_string() },
    }
}

/// The same, for `map_err`.
pub(super) fn while_doing(doing: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| fault(doing, &error)
}

enum Advice {
    /// The same call may succeed later.
    TryAgain(&'static str),
    /// Somebody has to do something first.
    Repair(&'static str),
    None,
}

fn advice(code: ErrorCode) -> Advice {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Advice::TryAgain("another process is writing to the database")
        }
        ErrorCode::DiskFull => {
            Advice::TryAgain("the disk is full: make room, or shorten the retention")
        }
        ErrorCode::SystemIoFailure => Advice::TryAgain("the disk reports an error"),
        ErrorCode::OutOfMemory => Advice::TryAgain("there is no memory left"),
        ErrorCode::FileLockingProtocolFailed => {
            Advice::TryAgain("the file cannot be locked, as on some network drives")
        }
        ErrorCode::OperationInterrupted | ErrorCode::OperationAborted => {
            Advice::TryAgain("the operation was interrupted")
        }
        ErrorCode::ReadOnly => Advice::Repair(
            "the database may only be read: check who owns the file and its directory",
        ),
        ErrorCode::PermissionDenied | ErrorCode::CannotOpen => Advice::Repair(
            "the file cannot be opened: check that its directory exists and may be written to",
        ),
        ErrorCode::NotADatabase => {
            Advice::Repair("the file is not an SQLite database: name another, or move it away")
        }
        ErrorCode::DatabaseCorrupt => {
            Advice::Repair("the file is damaged: restore a copy, or move it away to begin anew")
        }
        ErrorCode::TooBig => Advice::Repair("a text is longer than the database takes"),
        ErrorCode::InternalMalfunction
        | ErrorCode::NotFound
        | ErrorCode::SchemaChanged
        | ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::ApiMisuse
        | ErrorCode::NoLargeFileSupport
        | ErrorCode::AuthorizationForStatementDenied
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::Unknown
        // SQLite may come to know more of them.
        | _ => Advice::None,
    }
}

/// The thread that answers is gone, which only a defect can bring about.
pub(super) fn stopped(doing: &'static str) -> StoreError {
    StoreError::Unavailable(format!("{doing}: the store has stopped"))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn what_may_pass_is_unavailable_and_the_rest_says_what_to_do() {
        for (code, may_pass, expected) in [
            (ffi::SQLITE_FULL, true, "the disk is full"),
            (ffi::SQLITE_BUSY, true, "another process is writing"),
            (ffi::SQLITE_LOCKED, true, "another process is writing"),
            (ffi::SQLITE_IOERR_WRITE, true, "the disk reports an error"),
            (ffi::SQLITE_READONLY, false, "may only be read"),
            (ffi::SQLITE_NOTADB, false, "not an SQLite database"),
            (ffi::SQLITE_CORRUPT, false, "restore a copy"),
            (ffi::SQLITE_CANTOPEN, false, "check that its directory exists"),
            (ffi::SQLITE_CONSTRAINT, false, "testing"),
        ] {
            let error =
                Error::SqliteFailure(ffi::Error::new(code), Some("in its words".to_owned()));
            let told = fault("testing", &error);
            assert_eq!(matches!(told, StoreError::Unavailable(_)), may_pass, "{told}");
            let told = told.to_string();
            assert!(told.contains(expected) && told.contains("in its words"), "{told}");
        }
    }
}
