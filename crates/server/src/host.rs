//! Whoever runs functions on this node: it opens the addresses where workers ask for work.

use async_trait::async_trait;
use servo_model::function::FunctionSpec;
use servo_model::{FunctionName, RunId, TenantId};

#[async_trait]
pub trait FunctionHost: Send + Sync {
    /// Why a function that is reached in this way cannot run here, if it cannot.
    fn unreachable(&self, _spec: &FunctionSpec) -> Option<&'static str> {
        None
    }

    /// The address where workers of the function ask for work, if that is how it is reached; opened if it is not yet.
    async fn worker_address(&self, tenant: &TenantId, name: &FunctionName, spec: &FunctionSpec) -> Option<String>;

    /// The same for workers of one version, which get the runs that are pinned to it and no others.
    async fn version_address(&self, tenant: &TenantId, name: &FunctionName, version: u64) -> Option<String>;

    /// The function and version whose worker a run waits for on this node. Other nodes may know more.
    fn awaited_worker(&self, tenant: &TenantId, run_id: &RunId) -> Option<String>;

    /// Workers that ask this node for calls of a function, or have some, right now. `None` if it has no workers anywhere.
    fn workers(&self, tenant: &TenantId, name: &FunctionName, spec: &FunctionSpec) -> Option<u64>;
}

/// For servers that run no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

#[async_trait]
impl FunctionHost for NoHost {
    async fn worker_address(&self, _tenant: &TenantId, _name: &FunctionName, _spec: &FunctionSpec) -> Option<String> {
        None
    }

    async fn version_address(&self, _tenant: &TenantId, _name: &FunctionName, _version: u64) -> Option<String> {
        None
    }

    fn awaited_worker(&self, _tenant: &TenantId, _run_id: &RunId) -> Option<String> {
        None
    }

    fn workers(&self, _tenant: &TenantId, _name: &FunctionName, _spec: &FunctionSpec) -> Option<u64> {
        None
    }
}
