//! A signature that is refused.
#![allow(unused_imports, dead_code, reason = "only the signature matters")]

use aws_durable_execution_sdk::{DurableContext, DurableError, durable_execution};

#[durable_execution]
async fn handler(event: u32, ctx: DurableContext) -> u32 {
    event
}

fn main() {}
