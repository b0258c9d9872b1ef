//! Any text as a filter or an order of a list: no panic, no deep recursion, and an answer that can be evaluated. The body is
//! shared with the crate's own tests, which run it on fewer inputs.
#![no_main]
#![allow(dead_code, reason = "the shared file checks ids as well")]

#[path = "../../crates/entrypoint/tests/it/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|text: &str| check::check_query(text));
