//! What may happen to a run: `decide(state, command, now)` gives the facts to record and the actions they ask for.
//!
//! Pure and synchronous, one file per command. A decision is strict where the fold of `servo-model` is tolerant: only
//! what the transition functions allow becomes a fact. Nothing here reads a clock, draws a number or touches a store.

mod admit;
mod begin;
mod command;
mod decide;
mod decision;
mod execution;
mod limit;
mod refusal;
mod retry;
mod schedule;
mod signal;
mod skip;
mod start;
mod step;
mod terminate;
mod tick;

mod cancel;
mod pause;
mod resume;

pub use admit::{Admission, Overload, OverloadPolicy, admit};
pub use command::{Command, LateResults, Policy, Signal, SignalKind, StartRun, StepResult};
pub use decide::{Run, decide};
pub use decision::{Action, Decision, Fact, Spawn};
pub use execution::{Answer, CallbackAnswer, Checkpoint, ExecutionCommand, StartExecution, Used};
pub use refusal::Refusal;
