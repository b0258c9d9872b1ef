//! Any text as a GTS id: no panic, and an id that was read is made of its parts. The body is shared with the crate's own tests,
//! which run it on fewer inputs.
#![no_main]
#![allow(dead_code, reason = "the shared file checks queries as well")]

#[path = "../../crates/entrypoint/tests/it/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|text: &str| check::check_gts(text));
