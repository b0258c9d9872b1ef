//! Durable executions as the published API has them: start, checkpoint, state, history, callbacks, stop.
//!
//! A thin shell: names and tokens are opened here, what may happen is decided by the machine, and the answers are read from
//! the state that the decision leads to. The HTTP server and programs with the engine inside call the same functions.

mod callbacks;
mod checkpoint;
pub(crate) mod families;
mod functions;
mod history;
mod read;
pub(crate) mod seal;
mod service;
mod start;
mod state;

use std::sync::Arc;

use servo_entrypoint::Types;
use servo_machine::Refusal;
use servo_model::function::Place;
use servo_model::{RunId, RunState, TenantId};
use servo_store::Scope;
use servo_wire::lambda::{ErrorName, INVALID_TOKEN};

use crate::engine::{Engine, Error};
use crate::entrypoints::Entrypoints;

pub use functions::Resolved;
pub use read::{ListQuery, PageQuery};
pub(crate) use seal::{Purpose, Seal};
pub use start::{Begun, StartFunction};

/// No ARN begins like the id of a run.
const RUN_ID_PREFIX: &str = "inv_";
const NO_ARN: &str = "DurableExecutionArn is not the ARN of an execution";
/// Who the events of checkpoints come from.
pub(crate) const HANDLER: &str = "handler";

/// Why a call was refused, in the API's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub name: ErrorName,
    pub message: String,
}

impl Refused {
    pub fn new(name: ErrorName, message: impl Into<String>) -> Self {
        Self { name, message: message.into() }
    }

    /// Whether the service is at fault, so that another try may go better.
    pub(crate) fn is_fault(&self) -> bool {
        self.name.status() >= 500
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorName::InvalidParameterValue, message)
    }

    fn stale_token() -> Self {
        Self::invalid(INVALID_TOKEN)
    }

    pub fn no_execution() -> Self {
        Self::new(ErrorName::ResourceNotFound, "no such durable execution")
    }
}

/// Of an operation that takes a token: one whose execution is gone is worth nothing any more.
fn of_a_token(error: Error) -> Refused {
    match Refused::from(error) {
        refused if refused.name == ErrorName::ResourceNotFound => Refused::stale_token(),
        refused => refused,
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => match refusal {
                Refusal::StaleToken => Self::stale_token(),
                Refusal::NoRun | Refusal::NoExecution => Self::no_execution(),
                Refusal::NoOperation(_) => Self::new(ErrorName::ResourceNotFound, "no such callback"),
                Refusal::CallbackClosed => Self::new(ErrorName::CallbackTimeout, refusal.to_string()),
                other => Self::invalid(other.to_string()),
            },
            Error::Invalid(invalid) => Self::invalid(invalid.to_string()),
            Error::RequestMismatch => Self::new(
                ErrorName::DurableExecutionAlreadyStarted,
                "an execution of this name was started with another payload",
            ),
            Error::Overloaded { .. } => {
                Self::new(ErrorName::TooManyRequests, "as many executions are active as may be")
            }
            Error::Store(servo_store::Error::NotFound) => Self::no_execution(),
            Error::Store(servo_store::Error::Limit { what, limit }) => {
                Self::invalid(format!("{what} is over its limit of {limit}"))
            }
            // What went wrong inside is for the log, not for the caller.
            other => {
                tracing::warn!(error = %other, "a call of the durable API failed");
                let name = if other.is_for_now() { ErrorName::Unavailable } else { ErrorName::Service };
                Self::new(name, "the service could not do this now; try again")
            }
        }
    }
}

impl From<servo_store::Error> for Refused {
    fn from(error: servo_store::Error) -> Self {
        Error::from(error).into()
    }
}

/// A handle: cheap to clone.
#[derive(Debug, Clone)]
pub struct Executions {
    engine: Engine,
    seal: Seal,
    place: Arc<Place>,
    kept: functions::Kept,
    entrypoints: Entrypoints,
}

impl Executions {
    pub async fn new(engine: Engine, place: Place, types: Types) -> Result<Self, servo_store::Error> {
        let store = engine.store().clone();
        let seal = Seal::new(store.secret().await?);
        let single_process = store.info().await?.single_process;
        let entrypoints = Entrypoints::new(store, types, single_process);
        let place = Arc::new(place);
        Ok(Self { engine, seal, place, kept: functions::Kept::default(), entrypoints })
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn seal(&self) -> &Seal {
        &self.seal
    }

    pub(crate) fn entrypoints(&self) -> &Entrypoints {
        &self.entrypoints
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The run that an ARN ends with, whatever else it says. For callers who show a token of that run.
    fn run_of(arn: &str) -> Result<RunId, Refused> {
        let last = arn.split_once("/durable-execution/").and_then(|(_, rest)| rest.split_once('/'));
        let (_, id) = last.ok_or_else(|| Refused::invalid(NO_ARN))?;
        RunId::parse(id).map_err(|_| Refused::no_execution())
    }

    /// The run that a call names, by the execution's ARN or by its own id. `None` if it names none.
    pub fn run_id_in(name: &str) -> Option<RunId> {
        if name.starts_with(RUN_ID_PREFIX) { RunId::parse(name).ok() } else { Self::run_of(name).ok() }
    }

    /// The run of an execution by its ARN, all of it: what says something else of the run is not its ARN. Those who know nothing but
    /// the run name it by its id alone.
    async fn run_named(&self, tenant: &TenantId, arn: &str) -> Result<RunId, Refused> {
        if arn.starts_with(RUN_ID_PREFIX) {
            return RunId::parse(arn).map_err(|_| Refused::no_execution());
        }
        let run = Self::run_of(arn)?;
        let is_its_own = |state: &RunState| self.names_of(state).0 == arn;
        let named = self.engine.view(&Self::scope(tenant), &run, is_its_own).await?;
        if named { Ok(run) } else { Err(Refused::no_execution()) }
    }

    fn scope(tenant: &TenantId) -> Scope {
        Scope::Tenant(tenant.clone())
    }
}
