//! The kit from outside: what it can let go wrong, and that it notices.

// The published example uses the SDK by this name.
extern crate servo_sdk as aws_durable_execution_sdk;

mod configs;
mod faults;
mod kit;
mod saga;
// Formatting would change what is to stay unchanged.
#[rustfmt::skip]
#[expect(unused_imports, unused_variables, reason = "the example is taken as it was published")]
#[path = "../../../sdk-macros/tests/it/usage_example.rs"]
mod usage_example;
