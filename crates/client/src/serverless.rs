//! The serverless runtime API: entrypoints and their invocations.

use reqwest::{Method, header};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use servo_entrypoint::{
    BulkOutcome, Entrypoint, EntrypointStatusAction, InvocationControlAction, InvocationRecord, InvocationRequest,
    InvocationResult, InvocationSignal, InvocationTimelineEvent, Page, SignalResult, StatusCount,
};

use crate::client::{Client, Patience};
use crate::endpoints::Reply;
use crate::error::Error;
use crate::path::segment;
use crate::timeline::TimelineFollower;

const PREFIX: &str = "/api/serverless-runtime/v1";

/// Which part of a list, and in which order.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// `$filter`
    pub filter: Option<String>,
    /// `$orderby`
    pub order: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl ListQuery {
    fn pairs(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("$filter", self.filter.clone()),
            ("$orderby", self.order.clone()),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("cursor", self.cursor.clone()),
        ]
    }
}

/// Which entrypoints to list.
#[derive(Debug, Clone, Default)]
pub struct EntrypointQuery {
    pub prefix: Option<String>,
    pub status: Option<String>,
    pub tags: Option<String>,
    pub owner_type: Option<String>,
    /// The adapter, by its GTS id.
    pub runtime: Option<String>,
    pub page: ListQuery,
}

/// Which invocations to list.
#[derive(Debug, Clone, Default)]
pub struct InvocationQuery {
    pub entrypoint_id: Option<String>,
    pub status: Option<String>,
    pub correlation_id: Option<String>,
    pub mode: Option<String>,
    pub page: ListQuery,
}

/// One action on all invocations that a filter finds.
#[derive(Debug, Clone)]
pub struct BulkRequest {
    pub action: InvocationControlAction,
    /// As `$filter`.
    pub filter: String,
    pub max_items: Option<u32>,
    pub per_second: Option<u32>,
    pub dry_run: bool,
    /// Goes on behind an earlier call.
    pub cursor: Option<String>,
}

/// A published type.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct TypeItem {
    /// Its GTS id.
    pub id: String,
    pub uri: String,
    pub href: String,
}

/// Counts by status.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct StatusCounts {
    pub items: Vec<StatusCount>,
}

impl Client {
    /// Takes the definition as a document, so that the server names all that is wrong with it.
    pub async fn register_entrypoint(&self, document: &Value) -> Reply<Entrypoint> {
        self.post(&at("/entrypoints"), document, Patience::Usual).await
    }

    /// The definition with its defaults; nothing is kept.
    pub async fn validate_entrypoint(&self, document: &Value) -> Reply<Entrypoint> {
        self.post(&at("/entrypoints:validate"), document, Patience::Usual).await
    }

    pub async fn list_entrypoints(&self, query: &EntrypointQuery) -> Reply<Page<Entrypoint>> {
        let mut pairs = query.page.pairs();
        pairs.push(("entrypoint_id_prefix", query.prefix.clone()));
        pairs.push(("status", query.status.clone()));
        pairs.push(("tags", query.tags.clone()));
        pairs.push(("owner_type", query.owner_type.clone()));
        pairs.push(("runtime", query.runtime.clone()));
        self.get(&at("/entrypoints"), &pairs).await
    }

    /// By the id of the registration, `ep_…`.
    pub async fn entrypoint(&self, id: &str) -> Reply<Entrypoint> {
        self.get(&entrypoint_path(id), &[]).await
    }

    /// Replaces a draft.
    pub async fn update_entrypoint(&self, id: &str, document: &Value) -> Reply<Entrypoint> {
        self.json(self.request(Method::PUT, &entrypoint_path(id), &[]).json(document), Patience::Usual).await
    }

    pub async fn set_entrypoint_status(&self, id: &str, action: EntrypointStatusAction) -> Reply<Entrypoint> {
        let body = json!({"action": action.as_str()});
        self.post(&format!("{}:status", entrypoint_path(id)), &body, Patience::Usual).await
    }

    pub async fn delete_entrypoint(&self, id: &str) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, &entrypoint_path(id), &[]), Patience::Usual).await.map(drop)
    }

    /// Starts an invocation; a synchronous one is waited for. A failed run is an answer.
    pub async fn start_invocation(&self, request: &InvocationRequest) -> Reply<InvocationResult> {
        let mut call = self.request(Method::POST, &at("/invocations"), &[]).json(request);
        if let Some(key) = &request.idempotency_key {
            call = call.header("idempotency-key", key);
        }
        self.json(call, Patience::Invocation).await
    }

    pub async fn list_invocations(&self, query: &InvocationQuery) -> Reply<Page<InvocationRecord>> {
        let mut pairs = query.page.pairs();
        pairs.push(("entrypoint_id", query.entrypoint_id.clone()));
        pairs.push(("status", query.status.clone()));
        pairs.push(("correlation_id", query.correlation_id.clone()));
        pairs.push(("mode", query.mode.clone()));
        self.get(&at("/invocations"), &pairs).await
    }

    pub async fn count_invocations(&self, entrypoint_id: Option<&str>) -> Reply<StatusCounts> {
        self.get(&at("/invocations:counts"), &[("entrypoint_id", entrypoint_id.map(str::to_owned))]).await
    }

    pub async fn invocation(&self, id: &str) -> Reply<InvocationRecord> {
        self.get(&invocation_path(id), &[]).await
    }

    /// A replay answers with the new invocation, everything else with the same one.
    pub async fn control_invocation(&self, id: &str, action: &InvocationControlAction) -> Reply<InvocationRecord> {
        self.post(&format!("{}:control", invocation_path(id)), action, Patience::Usual).await
    }

    pub async fn signal_invocation(&self, id: &str, signal: &InvocationSignal) -> Reply<SignalResult> {
        self.post(&format!("{}:signal", invocation_path(id)), signal, Patience::Usual).await
    }

    pub async fn bulk_control(&self, request: &BulkRequest) -> Reply<Page<BulkOutcome>> {
        let mut body = serde_json::to_value(&request.action).unwrap_or_default();
        body["filter"] = request.filter.clone().into();
        body["max_items"] = request.max_items.into();
        body["per_second"] = request.per_second.into();
        body["dry_run"] = request.dry_run.into();
        body["cursor"] = request.cursor.clone().into();
        self.post(&at("/invocations:bulk"), &body, Patience::Invocation).await
    }

    /// One page of what happened to an invocation.
    pub async fn timeline(&self, id: &str, cursor: Option<&str>) -> Reply<Page<InvocationTimelineEvent>> {
        let query = [("limit", Some("200".to_owned())), ("cursor", cursor.map(str::to_owned))];
        self.get(&timeline_path(id), &query).await
    }

    /// Follows what happens to an invocation until it has ended.
    pub fn follow_timeline(&self, id: &str) -> TimelineFollower {
        TimelineFollower::new(self.clone(), id.to_owned())
    }

    pub async fn types(&self) -> Reply<Page<TypeItem>> {
        self.get(&at("/types"), &[]).await
    }

    /// The JSON Schema of a type, by its GTS id.
    pub async fn type_schema(&self, id: &str) -> Reply<Box<RawValue>> {
        self.get(&at(&format!("/types/{}", segment(id))), &[]).await
    }

    pub(crate) fn timeline_request(&self, id: &str) -> reqwest::RequestBuilder {
        self.request(Method::GET, &timeline_path(id), &[]).header(header::ACCEPT, "text/event-stream")
    }
}

fn at(rest: &str) -> String {
    format!("{PREFIX}{rest}")
}

fn entrypoint_path(id: &str) -> String {
    format!("{PREFIX}/entrypoints/{}", segment(id))
}

fn invocation_path(id: &str) -> String {
    format!("{PREFIX}/invocations/{}", segment(id))
}

fn timeline_path(id: &str) -> String {
    format!("{}/timeline", invocation_path(id))
}
