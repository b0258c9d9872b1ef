//! A program with the engine inside: its workflows lie in a folder and go on when it is started again.
//!
//! `cargo run -p servo-embedded --example embedded -- ./greetings` (end it during the wait, and start it again)
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::path::Path;

use servo_embedded::{Error, Servo, Start};
use servo_sdk::{DurableContext, DurableError, Duration, StepConfig};

pub(crate) async fn greet(name: String, ctx: DurableContext) -> Result<String, DurableError> {
    let named = |name: &str| Some(StepConfig { name: Some(name.into()), ..StepConfig::default() });
    let letters: usize = ctx.step(|_| Ok(name.len()), named("count")).await?;
    ctx.wait(Duration::from_seconds(1), Some("a moment")).await?;
    ctx.step(|_| Ok(format!("Hello {name}, your name has {letters} letters")), named("greet")).await
}

pub(crate) async fn demo(folder: &Path) -> Result<String, Error> {
    let servo = Servo::builder().sqlite(folder).function("greet", greet).start().await?;
    // Under a name an execution is started once, however often the program is.
    let greeting = servo.start("greet", Start::with(&"Ada")?.named("ada")).await?;
    let said = greeting.result().await?;
    servo.shutdown().await;
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "./greetings".to_owned());
    println!("{}", demo(Path::new(&folder)).await?);
    Ok(())
}
