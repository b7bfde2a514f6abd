//! Checks of ids and step indices.

use rb_runtime::limits::{MAX_STEP_INDEX, is_valid_id};

use rb_http::error::{ApiResult, unprocessable};

/// Rejects an id that is empty, too long or has control characters.
pub(crate) fn check_id(path: &[&str], id: &str) -> ApiResult<()> {
    if is_valid_id(id) {
        return Ok(());
    }
    Err(unprocessable(path, "an id has 1 to 256 characters and no control characters"))
}

/// Rejects an index above `MAX_STEP_INDEX`.
pub(crate) fn check_index(index: u32) -> ApiResult<()> {
    if index > MAX_STEP_INDEX {
        let wanted = format!("{index} is too large: steps are numbered from 0 to {MAX_STEP_INDEX}");
        return Err(unprocessable(&["body", "step_index"], wanted));
    }
    Ok(())
}
