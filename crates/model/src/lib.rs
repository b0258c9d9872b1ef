//! The vocabulary of Servo: ids, time, limits, error codes, plans, events, states, and the fold from events to state.
//!
//! Everything here is pure and synchronous. There is no clock, no randomness and no IO: callers pass `now` and ids in.
//! What a run *may* do next is decided one layer up, in `servo-machine`; this crate only says what has happened.

pub mod alert;
pub mod artifact;
pub mod audit;
pub mod codes;
pub mod contract;
pub mod digits;
pub mod event;
pub mod execution;
pub mod function;
pub mod ids;
mod integer;
pub mod invalid;
pub mod invocation;
pub mod limits;
pub mod listing;
mod locate;
pub mod operation;
pub mod plan;
pub mod projection;
pub mod run;
pub mod security;
pub mod snapshot;
pub mod state;
pub mod step;
mod text;
pub mod time;
pub mod trace;
pub mod waiting;

pub use artifact::{ArtifactRef, StepError, StepOutput};
pub use audit::{AuditEntry, AuditOutcome};
pub use event::{Event, EventBody};
pub use execution::Execution;
pub use ids::{AliasName, EventId, FunctionName, KeyId, PlanId, RunId, SignalId, StepId, TenantId};
pub use invalid::Invalid;
pub use plan::{Plan, PlanRef, PlanStep, RunContext};
pub use run::RunStatus;
pub use security::{Permission, Role, SecurityContext};
pub use snapshot::{RunSnapshot, StepSnapshot};
pub use state::RunState;
pub use step::StepStatus;
pub use time::Timestamp;
pub use trace::TraceContext;
