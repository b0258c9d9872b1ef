//! The engine, a store and durable functions in one program: no server, no network, one folder.
//!
//! ```
//! use servo_embedded::Servo;
//! use servo_sdk::{DurableContext, DurableError};
//!
//! async fn greet(name: String, ctx: DurableContext) -> Result<String, DurableError> {
//!     let letters: usize = ctx.step(|_| Ok(name.len()), None).await?;
//!     Ok(format!("Hello {name}, {letters} letters"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), servo_embedded::Error> {
//! let servo = Servo::builder().in_memory().function("greet", greet).start().await?;
//! let greeting: String = servo.call("greet", &"Ada").await?;
//! assert_eq!(greeting, "Hello Ada, 3 letters");
//! servo.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! With [`Builder::sqlite`] or [`Builder::postgres`] everything that was started goes on after a restart of the program:
//! steps that were recorded do not run again. A handler is the same that runs on a Servo server or on AWS Lambda.
//!
//! - [`Builder`]: a store and functions, then [`Builder::start`].
//! - [`Servo`]: start, call, callbacks, stop, history.
//! - [`Host`] and [`EngineClient`]: the two ends between engine and SDK, for programs that build the runtime themselves.
//!
//! It does not listen anywhere and reads no configuration. One SQLite folder belongs to one program at a time; programs that
//! share a Postgres database register the same functions.

mod builder;
mod client;
mod error;
mod execution;
mod host;
mod servo;
mod stores;

pub use builder::Builder;
pub use client::EngineClient;
pub use error::{Ended, Error};
pub use execution::Execution;
pub use host::{Connect, Functions, Host};
pub use servo::{Servo, Start};
pub use servo_runtime::executions::{ListQuery, PageQuery, Refused};
pub use servo_runtime::{Bus, BusMessage, InProcessBus, RuntimeConfig};
