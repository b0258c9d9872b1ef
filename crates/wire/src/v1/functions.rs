//! Functions: what is registered, in which versions, and what still runs on each.

use serde::{Deserialize, Serialize};
use servo_model::Timestamp;
use servo_model::function::FunctionSpec;

/// One version of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionItem {
    pub name: String,
    pub version: u64,
    pub spec: FunctionSpec,
    pub digest: String,
    pub created_at: Timestamp,
    /// Where workers ask for work: the value of `AWS_LAMBDA_RUNTIME_API`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_address: Option<String>,
    /// Workers that ask the answering node for work or have some of it right now; absent where the function has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionList {
    /// The latest version of each.
    pub items: Vec<FunctionItem>,
    /// Where to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A function with its versions and names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionView {
    pub latest: FunctionItem,
    /// Newest first.
    pub versions: Vec<VersionItem>,
    pub aliases: Vec<AliasItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionItem {
    pub version: u64,
    pub created_at: Timestamp,
    /// Runs that are pinned to it and have not ended: what a version still has to serve before it can go.
    pub open_runs: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliasItem {
    pub alias: String,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AliasRequest {
    pub version: u64,
}

/// Lines that user code wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineList {
    pub items: Vec<LineItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineItem {
    pub number: u64,
    pub at: Timestamp,
    pub request_id: String,
    pub source: String,
    pub text: String,
}
