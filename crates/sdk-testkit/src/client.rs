//! The client in between: it passes calls on to the engine, or lets go wrong what the test asked for.

use std::sync::Arc;

use async_trait::async_trait;
use servo_embedded::EngineClient;
use servo_sdk::{CheckpointRequest, CheckpointResponse, DurableServiceClient, GetStateResponse, ServiceError};

use crate::faults::{Crash, Fault, Faults};

pub(crate) struct FaultyClient {
    pub(crate) engine: EngineClient,
    pub(crate) faults: Arc<Faults>,
}

impl FaultyClient {
    async fn pass(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        let response = self.engine.checkpoint(arn, request.clone()).await?;
        self.faults.recorded(arn, &request, &response);
        Ok(response)
    }
}

#[async_trait]
impl DurableServiceClient for FaultyClient {
    async fn checkpoint(&self, arn: &str, mut request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        match self.faults.next_call() {
            None => self.pass(arn, request).await,
            Some(Fault::Crash(Crash::Before)) => self.faults.crash().await,
            Some(Fault::Crash(Crash::After)) => {
                self.pass(arn, request).await?;
                self.faults.crash().await
            }
            Some(Fault::LostResponse) => {
                self.pass(arn, request).await?;
                Err(ServiceError::Unreachable("the test lost the answer".to_owned()))
            }
            Some(Fault::Duplicate) => {
                self.pass(arn, request.clone()).await?;
                self.pass(arn, request).await
            }
            Some(Fault::StaleToken) => {
                request.checkpoint_token = self.faults.exchange_token(&request.checkpoint_token);
                self.pass(arn, request).await
            }
        }
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        self.engine.get_state(arn, token, marker).await
    }
}
