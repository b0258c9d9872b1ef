//! Whoever runs functions on this node: told of registrations, so that workers find an address to ask at.

use async_trait::async_trait;
use servo_model::function::FunctionSpec;
use servo_model::{FunctionName, TenantId};

#[async_trait]
pub trait FunctionHost: Send + Sync {
    /// The address that workers of the function ask for work, if that is how it is reached.
    async fn registered(&self, tenant: &TenantId, name: &FunctionName, spec: &FunctionSpec) -> Option<String>;
}

/// For servers that run no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

#[async_trait]
impl FunctionHost for NoHost {
    async fn registered(&self, _tenant: &TenantId, _name: &FunctionName, _spec: &FunctionSpec) -> Option<String> {
        None
    }
}
