//! Tests of durable functions: a handler runs in the test's own thread on the real engine, over a store in memory, with
//! virtual time. A wait of a year takes milliseconds, and every fault that production knows can be asked for.
//!
//! ```
//! use servo_sdk::{DurableContext, DurableError, Duration, StepConfig};
//! use servo_sdk_testkit::{Crash, Kit};
//!
//! async fn renew(member: String, ctx: DurableContext) -> Result<String, DurableError> {
//!     ctx.wait(Duration::from_years(1), Some("membership")).await?;
//!     let charge = StepConfig { name: Some("charge".into()), ..StepConfig::default() };
//!     ctx.step(|_| Ok(format!("{member} renewed")), Some(charge)).await
//! }
//!
//! let kit = Kit::new().handler("renew", renew);
//! let outcome = kit.clone().fail_step("charge", 1, "card declined").run("renew", "Ada");
//! assert_eq!(outcome.value::<String>(), "Ada renewed");
//! assert_eq!(outcome.operation("charge").step_details.as_ref().map(|step| step.attempt), Some(2));
//!
//! // The program dies at every checkpoint, before and after it is recorded: the result is the same.
//! for (n, when, outcome) in kit.run_with_every_crash("renew", "Ada") {
//!     assert_eq!(outcome.value::<String>(), "Ada renewed", "{when:?} checkpoint {n}");
//!     assert!(outcome.reruns.is_empty(), "a recorded step ran again");
//! }
//! # let _ = Crash::Before;
//! ```
//!
//! Faults sit between the SDK and the engine, on the same types that cross the network in production. A crash drops
//! every task of the program where it stands and starts it again on the same store.
//!
//! What it does not do: no real time and no IO. Steps under test call fakes; a step that waits for the network would wait
//! for ever, and the kit says so.

mod client;
mod clock;
mod exec;
mod faults;
mod kit;
mod outcome;
mod run;

pub use faults::Crash;
pub use kit::{Answer, Kit};
pub use outcome::Outcome;

/// The guide's code is compiled and run with this crate's documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/durable-functions.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/testing.md")]
struct Testing;
