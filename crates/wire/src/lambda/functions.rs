//! What Lambda says of registered functions: the fields of its answers that we have a value for. Its clients do without the others.

use serde::{Deserialize, Serialize};

use super::DurableConfig;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FunctionConfiguration {
    pub function_name: String,
    pub function_arn: String,
    pub version: String,
    /// ISO 8601 with a numeric zone, as the service writes it.
    pub last_modified: String,
    /// Of the registration: it is what is deployed here.
    pub code_sha256: String,
    /// Seconds of one invocation.
    pub timeout: u64,
    /// A registered function can be called: there is nothing to wait for.
    pub state: String,
    pub last_update_status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_config: Option<DurableConfig>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetFunctionResponse {
    pub configuration: FunctionConfiguration,
    pub code: FunctionCode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<FunctionConcurrency>,
}

/// Where the code is, which Servo has none of: how the function is reached stands in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FunctionCode {
    pub repository_type: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FunctionConcurrency {
    pub reserved_concurrent_executions: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListFunctionsResponse {
    pub functions: Vec<FunctionConfiguration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_marker: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListVersionsResponse {
    pub versions: Vec<FunctionConfiguration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_marker: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AliasConfiguration {
    pub alias_arn: String,
    pub name: String,
    pub function_version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListAliasesResponse {
    pub aliases: Vec<AliasConfiguration>,
}
