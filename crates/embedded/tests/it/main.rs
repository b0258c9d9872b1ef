//! The engine, its stores and the SDK in one program, from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

// The published example uses the SDK by this name.
extern crate servo_sdk as aws_durable_execution_sdk;

mod basics;
mod client;
mod examples;
mod restart;
mod stores;
// Formatting would change what is to stay unchanged.
#[rustfmt::skip]
#[expect(unused_imports, unused_variables, reason = "the example is taken as it was published")]
#[path = "../../../sdk-macros/tests/it/usage_example.rs"]
mod usage_example;
