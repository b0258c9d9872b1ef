//! The two calls of a handler, for handlers that this node runs itself.

use async_trait::async_trait;
use servo_adapter::DurableService;
use servo_model::TenantId;
use servo_model::operation::ErrorObject;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, GetStateResponse};

use super::{Executions, Refused};

/// Operations on one page of a long state. In one process a page costs little.
const PAGE_ITEMS: usize = 1_000;

#[async_trait]
impl DurableService for Executions {
    async fn checkpoint(
        &self,
        tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, ErrorObject> {
        Executions::checkpoint(self, tenant, arn, request).await.map_err(error)
    }

    async fn state(
        &self,
        tenant: &TenantId,
        arn: &str,
        token: &str,
        marker: &str,
    ) -> Result<GetStateResponse, ErrorObject> {
        Executions::state(self, tenant, arn, token, Some(marker), Some(PAGE_ITEMS)).await.map_err(error)
    }
}

fn error(refused: Refused) -> ErrorObject {
    ErrorObject::new(refused.name.as_str(), refused.message)
}
