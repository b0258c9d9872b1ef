//! A child's program: what `servo starlark-worker` is in the product, for the tests of this crate.

use servo_adapter_starlark::KeptStack;

#[global_allocator]
static ALLOCATOR: KeptStack<std::alloc::System> = KeptStack(std::alloc::System);

fn main() -> std::process::ExitCode {
    servo_adapter_starlark::worker_main()
}
