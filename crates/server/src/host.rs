//! Whoever runs functions on this node: it opens the addresses where workers ask for work.

use async_trait::async_trait;
use servo_model::function::FunctionSpec;
use servo_model::{FunctionName, TenantId};

#[async_trait]
pub trait FunctionHost: Send + Sync {
    /// The address where workers of the function ask for work, if that is how it is reached; opened if it is not yet.
    async fn worker_address(&self, tenant: &TenantId, name: &FunctionName, spec: &FunctionSpec) -> Option<String>;
}

/// For servers that run no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

#[async_trait]
impl FunctionHost for NoHost {
    async fn worker_address(&self, _tenant: &TenantId, _name: &FunctionName, _spec: &FunctionSpec) -> Option<String> {
        None
    }
}
