//! One execution that was started here.

use std::time::Duration;

use serde::de::DeserializeOwned;
use servo_model::TenantId;
use servo_runtime::executions::{Begun, Executions};
use servo_wire::lambda::ExecutionStatus;

use crate::error::{Ended, Error};

/// How long the engine is asked to wait at a time. Only the caller ends the wait for a result.
const AT_A_TIME: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone)]
pub struct Execution {
    executions: Executions,
    tenant: TenantId,
    begun: Begun,
}

impl Execution {
    pub(crate) fn new(executions: Executions, tenant: TenantId, begun: Begun) -> Self {
        Self { executions, tenant, begun }
    }

    /// Its name in the API: what `get`, `history` and `stop` take.
    pub fn arn(&self) -> &str {
        &self.begun.arn
    }

    /// False when an earlier start under the same name had begun it.
    pub fn is_new(&self) -> bool {
        self.begun.created
    }

    /// Waits until it has ended. Giving up waiting does not end it.
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let ended = loop {
            if let Some(ended) = self.executions.wait(&self.tenant, &self.begun.run_id, AT_A_TIME).await? {
                break ended;
            }
        };
        if ended.status != ExecutionStatus::Succeeded {
            return Err(Error::Ended(Box::new(Ended { status: ended.status, error: ended.error })));
        }
        let text = ended.result.as_deref().unwrap_or("null");
        serde_json::from_str(text).map_err(|error| Error::json("the result is not of the asked type", &error))
    }
}
