//! The async shell around the machine: it loads a run, lets `servo-machine` decide, appends, and performs the actions.
//!
//! Time, spawning and randomness are injected (`Clock`, `Tasks`, `Ids`), and nothing here needs a particular executor:
//! the simulator runs the same code under a seeded one. The shell knows `dyn Store` and `dyn Adapter`, never a backend.
//!
//! ```text
//! Serverless  entrypoints and their invocations
//! Engine    commands on runs: load → decide → append → wake
//! Contract  the runtime contract: authority, dispatch backlog, replay, readiness
//! loops     authority · dispatcher · queue · timers · projector · relay · replay · retention
//! Runtime   builds all of it, starts the loops, stops them in order
//! ```

pub mod bus;
pub mod clock;
pub mod config;
pub mod contract;
pub mod engine;
pub(crate) mod entrypoints;
pub mod executions;
pub mod ids;
pub mod loops;
pub mod metrics;
pub mod runtime;
pub mod serverless;
pub mod shutdown;
pub mod spans;
mod standing;
pub mod tasks;
pub mod transfer;
pub mod verify;
pub mod wake;

pub use bus::{Bus, BusError, BusMessage, InProcessBus};
pub use clock::{Clock, SystemClock};
pub use config::RuntimeConfig;
pub use contract::Contract;
pub use engine::{Engine, Error};
pub use ids::Ids;
pub use runtime::{Parts, Runtime};
pub use servo_entrypoint::Types;
pub use shutdown::Shutdown;
pub use spans::{OpenSpan, Span, SpanKind, SpanSink};
pub use tasks::Tasks;
