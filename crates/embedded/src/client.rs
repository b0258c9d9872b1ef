//! The engine in the same process as the service of the SDK: updates go over as they are, nothing becomes JSON on the way.

use async_trait::async_trait;
use servo_model::TenantId;
use servo_runtime::executions::{Executions, Refused};
use servo_sdk::{CheckpointRequest, CheckpointResponse, DurableServiceClient, GetStateResponse, ServiceError};

/// Operations on one page of a long state. In one process a page costs little, so it is as large as the engine allows.
const PAGE_ITEMS: usize = 1_000;

#[derive(Debug, Clone)]
pub struct EngineClient {
    executions: Executions,
    tenant: TenantId,
}

impl EngineClient {
    pub fn new(executions: Executions, tenant: TenantId) -> Self {
        Self { executions, tenant }
    }
}

#[async_trait]
impl DurableServiceClient for EngineClient {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        self.executions.checkpoint(&self.tenant, arn, request).await.map_err(refused)
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        self.executions.state(&self.tenant, arn, token, Some(marker), Some(PAGE_ITEMS)).await.map_err(refused)
    }
}

/// In the words that a server would use, so that the SDK decides the same here and there.
fn refused(refused: Refused) -> ServiceError {
    let Refused { name, message } = refused;
    ServiceError::Refused { status: name.status(), code: name.as_str().to_owned(), message }
}
