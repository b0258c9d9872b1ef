//! AWS's conformance cases over HTTP: our engine on SQLite, our server, and handlers written with our SDK.
//!
//! With the feature `aws` all cases also run over the client of `aws-sdk-lambda`, and the server verifies its signatures.
//! Waits in the cases are real seconds, so all cases of a suite run at the same time.
#![expect(clippy::unwrap_used, reason = "a test's helpers stop at what they do not expect")]

#[cfg(feature = "aws")]
mod aws;
mod handlers;
mod runner;
mod server;
mod service;
mod suites;
mod worker;
