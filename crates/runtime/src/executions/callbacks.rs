//! Answers to callbacks, and stopping.

use servo_machine::{CallbackAnswer, Command, ExecutionCommand};
use servo_model::operation::ErrorObject;
use servo_model::{RunState, TenantId, Timestamp};
use servo_store::Scope;
use servo_wire::lambda::ErrorName;

use super::seal::{CallbackRef, Purpose};
use super::{Executions, Refused};
use crate::engine::Order;

const RESULT_BYTES_MAX: usize = 1024 * 1024;
/// The error's type where a stop gives none.
const STOPPED: &str = "Execution.Stopped";

impl Executions {
    /// Whoever has the id may answer, within the caller's own tenant.
    pub async fn callback(&self, tenant: &TenantId, id: &str, answer: CallbackAnswer) -> Result<(), Refused> {
        let large = match &answer {
            CallbackAnswer::Succeed(result) => result.as_ref().map_or(0, String::len) > RESULT_BYTES_MAX,
            CallbackAnswer::Fail(error) => error.len() > RESULT_BYTES_MAX,
            CallbackAnswer::Heartbeat => false,
        };
        if large {
            let message = format!("the answer to a callback has at most {RESULT_BYTES_MAX} bytes");
            return Err(Refused::invalid(message));
        }
        let unknown = || Refused::new(ErrorName::ResourceNotFound, "no such callback");
        let reference: CallbackRef = self.seal.open(Purpose::Callback, id).ok_or_else(unknown)?;
        if reference.tenant != *tenant {
            return Err(unknown());
        }
        let command = ExecutionCommand::Callback { operation_id: reference.operation, answer };
        let order = Order::new(
            Scope::Tenant(reference.tenant),
            reference.run,
            Command::Execution(Box::new(command)),
            "callback",
        );
        self.engine.execute(order).await.map_err(|error| match Refused::from(error) {
            // The run is gone, and its callbacks with it.
            refused if refused.name == ErrorName::ResourceNotFound => unknown(),
            refused => refused,
        })?;
        Ok(())
    }

    /// Ends the execution. One that has ended stays as it is.
    pub async fn stop(&self, tenant: &TenantId, arn: &str, error: ErrorObject, by: &str) -> Result<Timestamp, Refused> {
        let run = self.run_named(tenant, arn).await?;
        if error.len() > RESULT_BYTES_MAX {
            return Err(Refused::invalid(format!("an error has at most {RESULT_BYTES_MAX} bytes")));
        }
        // Whoever waits for it is told what has happened, although nobody said why.
        let nothing_said = error == ErrorObject::default();
        let error =
            if nothing_said { ErrorObject::new(STOPPED, "the execution was stopped on request") } else { error };
        let command = ExecutionCommand::Stop { error, by: by.to_owned() };
        let command = Command::Execution(Box::new(command));
        let order = Order::new(Self::scope(tenant), run, command, "api");
        let ended = |state: &RunState| state.completed_at;
        let outcome = self.engine.execute_with(order, ended).await?;
        Ok(outcome.view.unwrap_or_else(|| self.engine.now()))
    }
}
