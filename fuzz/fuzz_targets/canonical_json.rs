//! Any bytes as JSON text: no panic, agreement with another reader about what is JSON, a stable canonical form that
//! reads back as the same data. The body is shared with the crate's own tests, which run it on fewer inputs.
#![no_main]

#[path = "../../crates/canon/tests/it/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check_canonical_json(bytes));
