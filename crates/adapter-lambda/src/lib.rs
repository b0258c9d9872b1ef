//! Reaches handlers of functions in the three ways that a function's `reach` names: `push` calls a URL that speaks
//! Lambda's Invoke, `pull` serves Lambda's Runtime API to workers that ask, `in_process` calls a closure. `supervise`
//! keeps a binary running as such a worker.
//!
//! Nothing is decided here about executions: a call brings an answer or says how it failed, and whether to invoke
//! again is decided on the log. Nothing is kept either: after a restart the same invocations come again.

mod failure;
mod handlers;
mod in_process;
mod listener;
mod port;
mod pull;
mod push;
mod runtime_api;
mod settings;
mod supervise;
mod tasks;
mod trace;

pub use handlers::LambdaHandlers;
pub use in_process::InProcessHandler;
pub use port::{WorkerKind, WorkerView};
pub use settings::{Error, NowFn, Parts, Settings};
pub use supervise::command::WorkerCommand;
// The same for every adapter; who uses this one need not know where they are declared.
pub use servo_adapter::{CapturedLine, LineSink, Source, WorkerWatch};
