//! Tests of the SDK from outside: handlers run to their end on a service in memory, with crashes at every call.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

// The published example uses the SDK by this name.
extern crate servo_sdk as aws_durable_execution_sdk;

mod basics;
mod branches;
mod crash;
mod extras;
mod failures;
#[cfg(feature = "http")]
mod http;
mod operations;
mod plugins;
mod properties;
mod resume;
mod service;
// Formatting would change what is to stay unchanged.
#[rustfmt::skip]
#[expect(unused_imports, unused_variables, reason = "the example is taken as it was published")]
#[path = "../../../sdk-macros/tests/it/usage_example.rs"]
mod usage_example;
