//! The order saga as a worker: a binary that asks a Lambda Runtime API for work, on Servo or on AWS. The handler is the one
//! that the embedded example runs; only `main` differs.
//!
//! A Servo server starts it as a worker of a pull function and sets the address in its environment.

use servo_sdk::run;

#[expect(dead_code, reason = "the other example's own program")]
#[path = "order_saga.rs"]
mod order_saga;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    run(order_saga::order_saga).await
}
