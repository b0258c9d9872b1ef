//! The registry of functions, and the lines that their code wrote.

use reqwest::Method;
use servo_model::function::FunctionSpec;
use servo_model::{AliasName, FunctionName, RunId};
use servo_wire::v1::{AliasItem, AliasRequest, FunctionItem, FunctionList, FunctionView, LineList};

use crate::client::{Client, Patience};
use crate::endpoints::Reply;
use crate::error::Error;
use crate::lines::LineFollower;
use crate::path::segment;

impl Client {
    /// Publishes the next version. The same registration again is the same version.
    pub async fn register_function(&self, name: &FunctionName, spec: &FunctionSpec) -> Reply<FunctionItem> {
        self.json(self.request(Method::PUT, &function_path(name), &[]).json(spec), Patience::Usual).await
    }

    /// Every function in its latest version, by name.
    pub async fn functions(&self, after: Option<&str>, limit: Option<u32>) -> Reply<FunctionList> {
        let query = [("after", after.map(str::to_owned)), ("limit", limit.map(|limit| limit.to_string()))];
        self.get("/v1/functions", &query).await
    }

    pub async fn function(&self, name: &FunctionName) -> Reply<FunctionView> {
        self.get(&function_path(name), &[]).await
    }

    /// One version, with the address for workers that are to get its runs only.
    pub async fn function_version(&self, name: &FunctionName, version: u64) -> Reply<FunctionItem> {
        self.get(&format!("{}/versions/{version}", function_path(name)), &[]).await
    }

    pub async fn remove_function(&self, name: &FunctionName) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, &function_path(name), &[]), Patience::Usual).await.map(drop)
    }

    /// Points an alias at a version, whether it was there before or not.
    pub async fn put_alias(&self, name: &FunctionName, alias: &AliasName, version: u64) -> Reply<AliasItem> {
        let request = self.request(Method::PUT, &alias_path(name, alias), &[]).json(&AliasRequest { version });
        self.json(request, Patience::Usual).await
    }

    pub async fn remove_alias(&self, name: &FunctionName, alias: &AliasName) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, &alias_path(name, alias), &[]), Patience::Usual).await.map(drop)
    }

    /// Lines after a number, as many as there are up to the limit.
    pub async fn run_logs(&self, run: &RunId, after: u64, limit: Option<u32>) -> Reply<LineList> {
        let query = [("after", Some(after.to_string())), ("limit", limit.map(|limit| limit.to_string()))];
        self.get(&format!("/v1/runs/{}/logs", segment(run.as_str())), &query).await
    }

    /// Follows lines from the one after a number until the run has ended.
    pub fn follow_lines(&self, run: &RunId, after: u64) -> LineFollower {
        LineFollower::new(self.clone(), run.clone(), after)
    }
}

fn function_path(name: &FunctionName) -> String {
    format!("/v1/functions/{}", segment(name.as_str()))
}

fn alias_path(name: &FunctionName, alias: &AliasName) -> String {
    format!("{}/aliases/{}", function_path(name), segment(alias.as_str()))
}
