//! Arbitrary bytes as a response.
#![no_main]

#[expect(dead_code, reason = "each target uses one property")]
#[path = "../../crates/rb-wire/tests/it/laws.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::answer(bytes));
