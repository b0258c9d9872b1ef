//! A person approves: the workflow waits for a callback, for days if need be, and holds nothing meanwhile.
//!
//! `cargo run -p servo-embedded --example approval`
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use serde::{Deserialize, Serialize};
use servo_embedded::{Error, Servo, Start};
use servo_sdk::{BoxError, DurableContext, DurableError, Duration, StepConfig, WaitForCallbackConfig};
use tokio::sync::mpsc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decision {
    pub(crate) approved: bool,
    pub(crate) by: String,
}

/// `ask` brings the callback's id to whoever decides: a mail, a ticket, a message.
pub(crate) async fn expense<F>(cents: u64, ctx: DurableContext, ask: F) -> Result<String, DurableError>
where
    F: Fn(String) -> Result<(), BoxError> + Send,
{
    let config = WaitForCallbackConfig::named("approval").timeout(Duration::from_days(2));
    let decision: Decision = match ctx.wait_for_callback(move |_, id| ask(id), config).await {
        Ok(decision) => decision,
        // Nobody decided in time, or the answer was a refusal.
        Err(DurableError::Callback { message, .. }) => return Ok(format!("not paid: {message}")),
        Err(error) => return Err(error),
    };
    if !decision.approved {
        return Ok(format!("not paid: {} said no", decision.by));
    }
    ctx.step(|_| Ok(format!("paid {cents} cents, approved by {}", decision.by)), StepConfig::named("pay")).await
}

pub(crate) async fn demo() -> Result<String, Error> {
    let (desk, mut asked) = mpsc::unbounded_channel::<String>();
    let handler = move |cents: u64, ctx: DurableContext| {
        let desk = desk.clone();
        expense(cents, ctx, move |id| Ok(desk.send(id)?))
    };
    let servo = Servo::builder().in_memory().function("expense", handler).start().await?;
    let execution = servo.start("expense", Start::with(&4_200)?).await?;
    if let Some(id) = asked.recv().await {
        servo.callback_succeed(&id, &Decision { approved: true, by: "Grace".to_owned() }).await?;
    }
    let said = execution.result().await?;
    servo.shutdown().await;
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    println!("{}", demo().await?);
    Ok(())
}
