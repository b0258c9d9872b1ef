//! The client against a server that says exactly what a test wants, down to the bytes.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod answers;
mod backup;
mod follow;
mod functions;
mod server;
mod serverless;
