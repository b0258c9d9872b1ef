//! The attribute from outside: what it accepts, and what it says to what it does not.

// Formatting would change what is to stay unchanged.
#[rustfmt::skip]
#[expect(unused_imports, unused_variables, reason = "the example is taken as it was published")]
mod usage_example;

use aws_durable_execution_sdk::Handler;

/// DX-001: the published example compiles unchanged, with the SDK renamed in `Cargo.toml`, and is a handler.
#[test]
fn the_usage_example_is_a_handler() {
    fn is_handler<E, R>(_: &impl Handler<E, R>) {}
    is_handler(&usage_example::on_json);
}

/// DX-002: a wrong signature is a compile error that names the fix.
#[test]
fn wrong_signatures_name_the_fix() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
