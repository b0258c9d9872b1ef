//! A signature that is refused.
#![allow(unused_imports, dead_code, reason = "only the signature matters")]

use aws_durable_execution_sdk::{DurableContext, DurableError, durable_execution};

#[durable_execution]
async fn handler() -> Result<u32, DurableError> {
    Ok(1)
}

fn main() {}
