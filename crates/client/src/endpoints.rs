//! One method per endpoint. Nothing here decides anything.

use reqwest::{Method, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use servo_model::contract::{Readiness, RuntimeCommand, RuntimeSnapshot};
use servo_model::{RunId, RunSnapshot};
use servo_wire::v1::{
    AlertList, DeadLetterList, EventPage, Executed, RedriveRequest, Redriven, Retired, RunFile, RunList, RunRef,
    RuntimeEventPage, Series, SignalAnswer, SignalRequest, StartRunRequest, StartedRun, StoreInfo, TerminateRequest,
    VerifyReport, Version, WhoAmI,
};

use crate::answer::Answer;
use crate::client::{Client, Patience};
use crate::error::Error;
use crate::follow::Follower;

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// The beginning or the end of an id; stands alone.
    pub id: Option<String>,
    pub status: Option<String>,
    pub plan_id: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

pub(crate) type Reply<T> = Result<Answer<T>, Error>;

impl Client {
    pub async fn start_run(&self, request: &StartRunRequest) -> Reply<StartedRun> {
        self.post("/v1/runs", request, Patience::Usual).await
    }

    pub async fn list_runs(&self, filter: &RunFilter) -> Reply<RunList> {
        let query = [
            ("id", filter.id.clone()),
            ("status", filter.status.clone()),
            ("planId", filter.plan_id.clone()),
            ("limit", filter.limit.map(|limit| limit.to_string())),
            ("cursor", filter.cursor.clone()),
        ];
        self.get("/v1/runs", &query).await
    }

    pub async fn run(&self, run: &RunId) -> Reply<RunSnapshot> {
        self.get(&format!("/v1/runs/{run}"), &[]).await
    }

    /// One page of events after a sequence number.
    pub async fn events(&self, run: &RunId, after: u64, limit: Option<u32>) -> Reply<EventPage> {
        let query = [("after", Some(after.to_string())), ("limit", limit.map(|limit| limit.to_string()))];
        self.get(&format!("/v1/runs/{run}/events"), &query).await
    }

    /// Follows events live, from the one after a sequence number until the run has ended.
    pub fn follow_events(&self, run: &RunId, after: u64) -> Follower {
        Follower::new(self.clone(), run.clone(), after)
    }

    pub async fn signal(&self, run: &RunId, signal: &SignalRequest) -> Reply<SignalAnswer> {
        self.post(&format!("/v1/runs/{run}/signals"), signal, Patience::Usual).await
    }

    pub async fn export_run(&self, run: &RunId) -> Reply<RunFile> {
        self.json(self.request(Method::GET, &format!("/v1/runs/{run}/export"), &[]), Patience::Endless).await
    }

    /// Takes the file as text: its digest is over the events exactly as they stand in it.
    pub async fn import_run(&self, file: String) -> Reply<RunRef> {
        let request = self
            .request(Method::POST, "/v1/runs/import", &[])
            .header(header::CONTENT_TYPE, "application/json")
            .body(file);
        self.json(request, Patience::Endless).await
    }

    pub async fn terminate_run(&self, run: &RunId, reason: &str) -> Reply<RunRef> {
        let request = TerminateRequest { reason: reason.to_owned() };
        self.post(&format!("/v1/runs/{run}/terminate"), &request, Patience::Usual).await
    }

    pub async fn delete_run(&self, run: &RunId) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &format!("/v1/runs/{run}"), &[]);
        self.send(request, Patience::Usual).await.map(drop)
    }

    pub async fn alerts(&self, limit: Option<u32>) -> Reply<AlertList> {
        self.get("/v1/alerts", &[("limit", limit.map(|limit| limit.to_string()))]).await
    }

    pub async fn series(&self) -> Reply<Series> {
        self.get("/v1/series", &[]).await
    }

    pub async fn dead_letters(&self, after: Option<&str>, limit: Option<u32>) -> Reply<DeadLetterList> {
        let query = [("after", after.map(str::to_owned)), ("limit", limit.map(|limit| limit.to_string()))];
        self.get("/v1/dead-letters", &query).await
    }

    /// Publishes dead letters again: one by its position, or all.
    pub async fn redrive(&self, position: Option<&str>) -> Reply<Redriven> {
        let request = RedriveRequest { position: position.map(str::to_owned) };
        self.post("/v1/dead-letters/redrive", &request, Patience::Usual).await
    }

    pub async fn store_info(&self) -> Reply<StoreInfo> {
        self.get("/v1/store/info", &[]).await
    }

    pub async fn verify_store(&self) -> Reply<VerifyReport> {
        self.json(self.request(Method::POST, "/v1/store/verify", &[]), Patience::Endless).await
    }

    pub async fn run_retention(&self) -> Reply<Retired> {
        self.json(self.request(Method::POST, "/v1/store/retention", &[]), Patience::Endless).await
    }

    pub async fn execute(&self, command: &RuntimeCommand) -> Reply<Executed> {
        self.post("/runtime/commands", command, Patience::Usual).await
    }

    pub async fn runtime_snapshot(&self) -> Reply<RuntimeSnapshot> {
        self.get("/runtime/snapshot", &[]).await
    }

    pub async fn runtime_events(&self, after: Option<&str>, limit: Option<u32>) -> Reply<RuntimeEventPage> {
        let query = [("after", after.map(str::to_owned)), ("limit", limit.map(|limit| limit.to_string()))];
        self.get("/runtime/events", &query).await
    }

    pub async fn runtime_schema(&self) -> Reply<Box<RawValue>> {
        self.get("/runtime/schema", &[]).await
    }

    /// Whom the server takes this client for.
    pub async fn whoami(&self) -> Reply<WhoAmI> {
        self.get("/v1/whoami", &[]).await
    }

    pub async fn version(&self) -> Reply<Version> {
        self.get("/version", &[]).await
    }

    /// What time it is for the server, as its answers say (`Date`, whole seconds). `None` if they do not.
    pub async fn date(&self) -> Result<Option<String>, Error> {
        let response = self.send(self.request(Method::GET, "/livez", &[]), Patience::Usual).await?;
        Ok(response.headers().get(header::DATE).and_then(|date| date.to_str().ok()).map(str::to_owned))
    }

    /// The description of the HTTP API.
    pub async fn openapi(&self) -> Reply<Box<RawValue>> {
        self.get("/openapi.json", &[]).await
    }

    /// Whether the process runs.
    pub async fn livez(&self) -> Result<(), Error> {
        self.send(self.request(Method::GET, "/livez", &[]), Patience::Usual).await.map(drop)
    }

    /// Ready or not: both are answers, not errors.
    pub async fn readyz(&self) -> Reply<Readiness> {
        let response = self.exchange(self.request(Method::GET, "/readyz", &[]), Patience::Usual).await?;
        match response.status() {
            StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE => self.decode(response).await,
            _ => Err(self.refusal(response).await),
        }
    }

    /// The metrics in Prometheus' text form.
    pub async fn metrics(&self) -> Result<String, Error> {
        let response = self.send(self.request(Method::GET, "/metrics", &[]), Patience::Usual).await?;
        self.text(response).await
    }

    pub(crate) async fn get<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Reply<T> {
        self.json(self.request(Method::GET, path, query), Patience::Usual).await
    }

    pub(crate) async fn post<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Patience,
    ) -> Reply<T> {
        self.json(self.request(Method::POST, path, &[]).json(body), patience).await
    }
}
