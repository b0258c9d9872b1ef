//! A child's program: what `servo starlark-worker` is in the product, for the tests of this crate.

fn main() -> std::process::ExitCode {
    servo_adapter_starlark::worker_main()
}
