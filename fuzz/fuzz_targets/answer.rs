//! Any bytes as an answer.
#![no_main]

#[expect(dead_code, reason = "each target tries one law")]
#[path = "../../crates/rb-wire/tests/it/laws.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::answer(bytes));
