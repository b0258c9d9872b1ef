//! The command line as its users type it.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod args;
mod examples;
mod reference;
mod remote;
#[path = "../../../client/tests/it/server.rs"]
mod server;
mod serverless;
