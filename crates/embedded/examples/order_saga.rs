//! An order as a saga: what was done is undone, newest first, when a later step fails for good.
//!
//! `cargo run -p servo-embedded --example order_saga`
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use serde::{Deserialize, Serialize};
use servo_embedded::{Error, Servo};
use servo_sdk::{Backoff, BoxError, DurableContext, DurableError, StepConfig};

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
    /// What was undone, in that order.
    pub(crate) undone: Vec<String>,
}

fn step(name: &str) -> Option<StepConfig> {
    let retry = Backoff::fixed(3, std::time::Duration::from_secs(1));
    Some(StepConfig { name: Some(name.into()), retry_strategy: Some(Box::new(retry)), ..StepConfig::default() })
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

pub(crate) async fn order_saga(order: Order, ctx: DurableContext) -> Result<Placed, DurableError> {
    let mut done: Vec<(&str, String)> = Vec::new();
    let failed = match forward(&order, &ctx, &mut done).await {
        Ok(()) => None,
        // The service's own troubles are not the order's: only a step that failed for good is undone.
        Err(DurableError::UserCode { message, .. }) => Some(message),
        Err(error) => return Err(error),
    };
    let mut undone = Vec::new();
    if failed.is_some() {
        while let Some((what, receipt)) = done.pop() {
            let name = format!("undo {what}");
            undone.push(ctx.step(|_| Ok(format!("{what} {receipt}")), step(&name)).await?);
        }
    }
    let status = failed.map_or("placed".to_owned(), |reason| format!("undone: {reason}"));
    Ok(Placed { order: order.id, status, undone })
}

async fn forward(
    order: &Order,
    ctx: &DurableContext,
    done: &mut Vec<(&'static str, String)>,
) -> Result<(), DurableError> {
    done.push(("reserve", ctx.step(|_| reserve(order), step("reserve")).await?));
    done.push(("charge", ctx.step(|_| charge(order), step("charge")).await?));
    done.push(("ship", ctx.step(|_| ship(order), step("ship")).await?));
    Ok(())
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
