//! A signature that is refused.
#![allow(unused_imports, dead_code, reason = "only the signature matters")]

use aws_durable_execution_sdk::{DurableContext, DurableError, durable_execution};

#[durable_execution]
async fn handler<E>(event: E, ctx: DurableContext) -> Result<E, DurableError> {
    Ok(event)
}

fn main() {}
