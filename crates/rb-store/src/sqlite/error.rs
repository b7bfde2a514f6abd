//! Conversion of SQLite errors, with advice and by whether a retry may succeed.

use rusqlite::{Error, ErrorCode};

use crate::StoreError;

/// Version conflict, passed through rusqlite's error type.
#[derive(Debug, thiserror::Error)]
#[error("the run has changed since it was read")]
pub(super) struct VersionConflict;

pub(super) fn is_version_conflict(error: &Error) -> bool {
    matches!(error, Error::ToSqlConversionFailure(cause) if cause.is::<VersionConflict>())
}

/// Converts an error of the database.
pub(super) fn store_error(operation: &'static str, error: &Error) -> StoreError {
    if is_version_conflict(error) {
        return StoreError::VersionConflict;
    }
    let Some(code) = error.sqlite_error_code() else {
        return StoreError::Failed { operation, cause: error.to_string() };
    };
    match advice(code) {
        Advice::TryAgain(why) => StoreError::Unavailable(format!("{operation}: {why} ({error})")),
        Advice::Repair(why) => StoreError::Failed { operation, cause: format!("{why} ({error})") },
        Advice::None => StoreError::Failed { operation, cause: error.to_string() },
    }
}

/// Returns `store_error` as a closure for `map_err`.
pub(super) fn with_context(operation: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| store_error(operation, &error)
}

enum Advice {
    /// The same call may succeed later.
    TryAgain(&'static str),
    /// The cause must be fixed first.
    Repair(&'static str),
    None,
}

fn advice(code: ErrorCode) -> Advice {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Advice::TryAgain("another process is writing to the database")
        }
        ErrorCode::DiskFull => {
            Advice::TryAgain("the disk is full; free space or shorten the retention")
        }
        ErrorCode::SystemIoFailure => Advice::TryAgain("the disk reports an error"),
        ErrorCode::OutOfMemory => Advice::TryAgain("out of memory"),
        ErrorCode::FileLockingProtocolFailed => {
            Advice::TryAgain("the file cannot be locked, as on some network drives")
        }
        ErrorCode::OperationInterrupted | ErrorCode::OperationAborted => {
            Advice::TryAgain("the operation was interrupted")
        }
        ErrorCode::ReadOnly => Advice::Repair(
            "the database is read-only; check who owns the file and its directory",
        ),
        ErrorCode::PermissionDenied | ErrorCode::CannotOpen => Advice::Repair(
            "the file cannot be opened; check that its directory exists and may be written to",
        ),
        ErrorCode::NotADatabase => {
            Advice::Repair("the file is not an SQLite database; use another file or move it away")
        }
        ErrorCode::DatabaseCorrupt => {
            Advice::Repair("the file is damaged; restore a backup or move it away to start with an empty database")
        }
        ErrorCode::TooBig => Advice::Repair("a text exceeds the size limit of the database"),
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
        // The enum is non-exhaustive.
        | _ => Advice::None,
    }
}

/// Error for a terminated worker thread, which is a defect.
pub(super) fn stopped(operation: &'static str) -> StoreError {
    StoreError::Unavailable(format!("{operation}: the store is closed"))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn errors_are_classified_and_give_advice() {
        for (code, is_transient, expected) in [
            (ffi::SQLITE_FULL, true, "the disk is full"),
            (ffi::SQLITE_BUSY, true, "another process is writing"),
            (ffi::SQLITE_LOCKED, true, "another process is writing"),
            (ffi::SQLITE_IOERR_WRITE, true, "the disk reports an error"),
            (ffi::SQLITE_READONLY, false, "is read-only"),
            (ffi::SQLITE_NOTADB, false, "not an SQLite database"),
            (ffi::SQLITE_CORRUPT, false, "restore a backup"),
            (ffi::SQLITE_CANTOPEN, false, "check that its directory exists"),
            (ffi::SQLITE_CONSTRAINT, false, "testing"),
        ] {
            let error =
                Error::SqliteFailure(ffi::Error::new(code), Some("in its words".to_owned()));
            let error = store_error("testing", &error);
            assert_eq!(matches!(error, StoreError::Unavailable(_)), is_transient, "{error}");
            let error = error.to_string();
            assert!(error.contains(expected) && error.contains("in its words"), "{error}");
        }
    }
}
