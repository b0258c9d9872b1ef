//! A running engine in this program.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_machine::CallbackAnswer;
use servo_model::TenantId;
use servo_runtime::Runtime;
use servo_runtime::executions::{ListQuery, PageQuery, Resolved, StartFunction};
use servo_sdk::ErrorObject;
use servo_wire::lambda::{GetExecutionResponse, HistoryResponse, ListExecutionsResponse};

use crate::builder::Builder;
use crate::client::EngineClient;
use crate::error::Error;
use crate::execution::Execution;

/// Who started an execution, as its record says.
const SUBJECT: &str = "embedded";

/// A handle: clones belong to the same engine. Dropping all of them does not end it; [`Servo::shutdown`] does.
#[derive(Debug, Clone)]
pub struct Servo {
    runtime: Runtime,
    tenant: TenantId,
    functions: Arc<BTreeMap<String, Resolved>>,
}

/// How an execution is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The caller's name of it: the same one never starts two.
    pub name: Option<String>,
    /// JSON.
    pub input: Option<String>,
}

impl Start {
    pub fn with(input: &impl Serialize) -> Result<Self, Error> {
        Ok(Self { name: None, input: Some(to_json("the input cannot be written", input)?) })
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl Servo {
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(runtime: Runtime, tenant: TenantId, functions: BTreeMap<String, Resolved>) -> Self {
        Self { runtime, tenant, functions: Arc::new(functions) }
    }

    fn function(&self, name: &str) -> Result<&Resolved, Error> {
        self.functions.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.functions.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::NoFunction { name: name.to_owned(), known }
        })
    }

    /// Records that the function is to run. Once this returns, it will, also after a crash.
    pub async fn start(&self, function: &str, start: Start) -> Result<Execution, Error> {
        self.begin(function, start, false).await
    }

    async fn begin(&self, function: &str, start: Start, synchronous: bool) -> Result<Execution, Error> {
        let call = StartFunction {
            tenant: self.tenant.clone(),
            subject: SUBJECT.to_owned(),
            function: self.function(function)?.clone(),
            name: start.name,
            input: Some(start.input.unwrap_or_else(|| "null".to_owned())),
            tenant_id: None,
            client_context: None,
            trace: None,
            synchronous,
        };
        let begun = self.runtime.executions().start(call).await?;
        Ok(Execution::new(self.runtime.executions().clone(), self.tenant.clone(), begun))
    }

    /// Starts the function and waits for its result.
    pub async fn call<T: DeserializeOwned>(&self, function: &str, input: &impl Serialize) -> Result<T, Error> {
        self.begin(function, Start::with(input)?, true).await?.result().await
    }

    /// Answers a callback with its result.
    pub async fn callback_succeed(&self, callback_id: &str, result: &impl Serialize) -> Result<(), Error> {
        let result = to_json("the callback's result cannot be written", result)?;
        self.callback(callback_id, CallbackAnswer::Succeed(Some(result))).await
    }

    pub async fn callback_fail(&self, callback_id: &str, error: ErrorObject) -> Result<(), Error> {
        self.callback(callback_id, CallbackAnswer::Fail(error)).await
    }

    /// Says that the outside party is still at work.
    pub async fn callback_heartbeat(&self, callback_id: &str) -> Result<(), Error> {
        self.callback(callback_id, CallbackAnswer::Heartbeat).await
    }

    async fn callback(&self, id: &str, answer: CallbackAnswer) -> Result<(), Error> {
        Ok(self.runtime.executions().callback(&self.tenant, id, answer).await?)
    }

    /// Ends an execution where it is. One that has ended stays as it is.
    pub async fn stop(&self, arn: &str, error: ErrorObject) -> Result<(), Error> {
        self.runtime.executions().stop(&self.tenant, arn, error, SUBJECT).await?;
        Ok(())
    }

    /// The execution as it stands, with input and result.
    pub async fn get(&self, arn: &str) -> Result<GetExecutionResponse, Error> {
        Ok(self.runtime.executions().get(&self.tenant, arn, true).await?)
    }

    /// What happened in it, page by page.
    pub async fn history(&self, arn: &str, page: PageQuery<'_>) -> Result<HistoryResponse, Error> {
        Ok(self.runtime.executions().history(&self.tenant, arn, true, page).await?)
    }

    /// A function's executions, newest first, page by page.
    pub async fn list(
        &self,
        function: &str,
        query: &ListQuery,
        page: PageQuery<'_>,
    ) -> Result<ListExecutionsResponse, Error> {
        self.function(function)?;
        Ok(self.runtime.executions().list(&self.tenant, function, query, page).await?)
    }

    /// The service that handlers of this program talk to.
    pub fn client(&self) -> EngineClient {
        EngineClient::new(self.runtime.executions().clone(), self.tenant.clone())
    }

    /// The engine beneath, for what this handle has no word for.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Takes no new work in, lets invocations in flight end for a while, and closes the store. What is open goes on after the
    /// next start.
    pub async fn shutdown(self) {
        self.runtime.stop().await;
    }
}

fn to_json(what: &'static str, value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::json(what, &error))
}
