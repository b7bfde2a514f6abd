//! Arbitrary bytes for the format detection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rb_wire::transcripts::{is_document, sniff};

fuzz_target!(|bytes: &[u8]| {
    let _ = (sniff(bytes), is_document(bytes));
});
