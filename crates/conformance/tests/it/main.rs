//! AWS's conformance cases over HTTP: our engine on SQLite, our server, and handlers written with our SDK.
//!
//! Waits in the cases are real seconds, so all cases of a suite run at the same time.
#![expect(clippy::unwrap_used, reason = "a test's helpers stop at what they do not expect")]

mod handlers;
mod runner;
mod server;
mod suites;
mod worker;
