//! An order as a saga: what was done is undone, newest first, when a later step fails for good.
//!
//! `cargo run -p servo-embedded --example order_saga`
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use serde::{Deserialize, Serialize};
use servo_embedded::{Error, Servo};
use servo_sdk::{BoxError, ContextConfig, DurableContext, DurableError, Duration, StepConfig};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) cents: u64,
    pub(crate) address: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) order: String,
    pub(crate) status: String,
}

fn step(name: &str) -> StepConfig {
    StepConfig::named(name).retry_every(3, Duration::from_seconds(1))
}

/// Calls to other systems carry the order's id, so that they can tell a repetition from a second order.
fn reserve(order: &Order) -> Result<String, BoxError> {
    Ok(format!("reservation-{}", order.id))
}

fn charge(order: &Order) -> Result<String, BoxError> {
    Ok(format!("payment-{}-{}", order.id, order.cents))
}

fn ship(order: &Order) -> Result<String, BoxError> {
    if order.address.is_empty() { Err("there is no address".into()) } else { Ok(format!("parcel-{}", order.id)) }
}

/// Stands for calls that take back what the receipt names.
fn take_back(receipt: &str) -> Result<(), BoxError> {
    if receipt.is_empty() { Err("there is no receipt".into()) } else { Ok(()) }
}

pub(crate) async fn order_saga(order: Order, ctx: DurableContext) -> Result<Placed, DurableError> {
    let forward = ctx.saga(
        async |mut saga| {
            let undo = |_, receipt: String| take_back(&receipt);
            saga.step(|_| reserve(&order), step("reserve")).undo(undo, step("undo reserve")).await?;
            saga.step(|_| charge(&order), step("charge")).undo(undo, step("undo charge")).await?;
            // The last step: nothing can fail after it, so nothing undoes it.
            saga.step(|_| ship(&order), step("ship")).await?;
            Ok(())
        },
        ContextConfig::named("place"),
    );
    let status = match forward.await {
        Ok(()) => "placed".to_owned(),
        // What was done is undone. What could not be undone has another error type, and fails the execution.
        Err(DurableError::UserCode { message, error_type, .. }) if error_type == "Error" => {
            format!("undone: {message}")
        }
        Err(error) => return Err(error),
    };
    Ok(Placed { order: order.id, status })
}

pub(crate) async fn demo() -> Result<Vec<Placed>, Error> {
    let servo = Servo::builder().in_memory().function("order", order_saga).start().await?;
    let mut placed = Vec::new();
    for address in ["Baker Street", ""] {
        let order = Order { id: format!("o-{}", placed.len() + 1), cents: 1_250, address: address.to_owned() };
        placed.push(servo.call("order", &order).await?);
    }
    servo.shutdown().await;
    Ok(placed)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    for placed in demo().await? {
        println!("{placed:?}");
    }
    Ok(())
}
