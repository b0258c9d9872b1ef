//! Executions as people look at them: one, or those of a function.

use serde::{Deserialize, Serialize};
use servo_model::limits::PLANS_PER_QUERY_MAX;
use servo_model::operation::ExecutionStatus;
use servo_model::trace::parent_of;
use servo_model::{RunId, RunState, TenantId, Timestamp};
use servo_store::runs::RunQuery;
use servo_store::{RunRow, Scope};
use servo_wire::lambda::{DurableConfig, ExecutionSummary, GetExecutionResponse, ListExecutionsResponse, TraceHeader};

use super::seal::Purpose;
use super::start::check_name;
use super::state::page_items;
use super::{Executions, Refused};
use crate::engine::Error;

#[derive(Debug, Clone, Copy, Default)]
pub struct PageQuery<'a> {
    pub marker: Option<&'a str>,
    pub max_items: Option<usize>,
    pub reverse: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    pub qualifier: Option<String>,
    pub name: Option<String>,
    pub statuses: Vec<ExecutionStatus>,
    pub started_after: Option<Timestamp>,
    pub started_before: Option<Timestamp>,
    /// Registrations of entrypoints that refer to the function: what they have started are executions of it, too, and have their own
    /// ids as names.
    pub entrypoints: Vec<String>,
}

/// Where a list goes on, bound to what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListMarker {
    tenant: TenantId,
    asked: String,
    after: RunId,
}

/// What an entrypoint has started is told from its log, and a page reads no more of them. Markers lead to the rest.
const READ_MAX: usize = 100;

impl Executions {
    pub async fn get(&self, tenant: &TenantId, arn: &str, with_data: bool) -> Result<GetExecutionResponse, Refused> {
        let run = self.run_named(tenant, arn).await?;
        let read = |state: &RunState| self.describe(state, with_data);
        self.engine.view(&Self::scope(tenant), &run, read).await?.ok_or_else(Refused::no_execution)
    }

    fn describe(&self, state: &RunState, with_data: bool) -> Option<GetExecutionResponse> {
        let execution = state.execution.as_ref()?;
        let start = &execution.head.start;
        let ended = execution.head.ended.as_ref();
        let status = ended.map_or(ExecutionStatus::Running, |ended| ended.status);
        let function_arn = self.place.function_arn(&start.function, &start.version);
        Some(GetExecutionResponse {
            durable_execution_arn: self.names_of(state).0,
            durable_execution_name: start.name.clone(),
            function_arn,
            version: Some(start.version.clone()),
            status,
            start_timestamp: execution.head.started_at.into(),
            end_timestamp: state.completed_at.filter(|_| ended.is_some()).map(Into::into),
            input_payload: start.input.clone().filter(|_| with_data),
            result: ended.and_then(|ended| ended.result.clone()).filter(|_| with_data),
            error: ended.and_then(|ended| ended.error.clone()).filter(|_| with_data),
            trace_header: start.trace.as_deref().map(|text| TraceHeader { trace_id: Some(parent_of(text).to_owned()) }),
            execution_data_included: with_data,
            durable_config: Some(DurableConfig {
                execution_timeout: Some(start.timeout_seconds),
                retention_period_in_days: None,
            }),
        })
    }

    /// A function's executions, of one version if it is qualified in its name or beside it, newest first unless reversed.
    pub async fn list(
        &self,
        tenant: &TenantId,
        function: &str,
        query: &ListQuery,
        page: PageQuery<'_>,
    ) -> Result<ListExecutionsResponse, Refused> {
        query.name.as_deref().map_or(Ok(()), check_name)?;
        let qualifier = self.reference(function, query.qualifier.as_deref())?.qualifier;
        let function = self.resolve(tenant, function, query.qualifier.as_deref()).await?;
        let version = qualifier.as_ref().map(|_| function.version.to_string());
        let items = page_items(page.max_items)?;
        let items = if query.entrypoints.is_empty() { items } else { items.min(READ_MAX) };
        // An entrypoint that comes while somebody turns pages does not end the list.
        let plain = ListQuery { entrypoints: Vec::new(), ..query.clone() };
        let asked = format!("{}|{qualifier:?}|{plain:?}|{}", function.name, page.reverse);
        let after = match page.marker.filter(|marker| !marker.is_empty()) {
            None => None,
            Some(text) => {
                let marker: Option<ListMarker> = self.seal.open(Purpose::Marker, text);
                let marker = marker.filter(|marker| marker.tenant == *tenant && marker.asked == asked);
                Some(marker.ok_or_else(|| Refused::invalid("Invalid marker"))?.after)
            }
        };
        let runs = RunQuery {
            outcome: (!query.statuses.is_empty())
                .then(|| query.statuses.iter().map(|status| outcome(*status)).collect()),
            created_from: query.started_after,
            created_until: query.started_before,
            oldest_first: page.reverse,
            after,
            limit: u32::try_from(items).unwrap_or(u32::MAX),
            ..RunQuery::default()
        };
        let own = RunQuery {
            plan_id: Some(function.name.to_string()),
            plan_version: version.clone(),
            name: query.name.clone(),
            ..runs.clone()
        };
        let scope = Self::scope(tenant);
        let mut rows = self.engine.store().list_runs(&scope, &own).await?;
        rows.extend(self.rows_of_entrypoints(&scope, query, &runs).await?);
        runs.sort(&mut rows);
        rows.truncate(items);
        let next = rows.last().filter(|_| rows.len() == items).map(|row| row.run_id.clone());
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.extend(self.summary(&scope, row, version.as_deref()).await?);
        }
        let next_marker = next.map(|after| {
            let marker = ListMarker { tenant: tenant.clone(), asked, after };
            self.seal.close(Purpose::Marker, self.engine.ids().nonce(), &marker)
        });
        Ok(ListExecutionsResponse { durable_executions: found, next_marker })
    }

    /// Of each plan the store reads no more than a page, from an index.
    async fn rows_of_entrypoints(
        &self,
        scope: &Scope,
        query: &ListQuery,
        runs: &RunQuery,
    ) -> Result<Vec<RunRow>, servo_store::Error> {
        let store = self.engine.store();
        let Some(name) = &query.name else {
            let mut rows = Vec::new();
            for plans in query.entrypoints.chunks(PLANS_PER_QUERY_MAX) {
                let theirs = RunQuery { invocations: Some(true), plan_ids: plans.to_vec(), ..runs.clone() };
                rows.extend(store.list_runs(scope, &theirs).await?);
            }
            return Ok(rows);
        };
        // Called by its id.
        let Ok(run_id) = RunId::parse(name) else { return Ok(Vec::new()) };
        let found = store.get_run(scope, &run_id).await?.filter(|row| {
            let is_theirs = row.invocation && query.entrypoints.iter().any(|id| **id == *row.plan_id);
            is_theirs && runs.matches(row) && runs.is_ahead(row)
        });
        Ok(found.into_iter().collect())
    }

    /// `None` for what is no execution of the version, or has gone meanwhile.
    async fn summary(
        &self,
        scope: &Scope,
        row: &RunRow,
        version: Option<&str>,
    ) -> Result<Option<ExecutionSummary>, Refused> {
        let named = if row.invocation {
            // The row names the entrypoint; which function it ran, in which version, its start says.
            let look = |state: &RunState| {
                let start = &state.execution.as_ref()?.head.start;
                Some((start.function.clone(), start.version.clone(), start.name.clone()))
            };
            match self.engine.view(scope, &row.run_id, look).await {
                Ok(named) => named.filter(|(_, own, _)| version.is_none_or(|asked| asked == own)),
                Err(Error::Store(servo_store::Error::NotFound) | Error::Quarantined(_)) => None,
                Err(error) => return Err(error.into()),
            }
        } else {
            // A plan may be called like the function; only executions have names.
            row.name.clone().map(|name| (row.plan_id.to_string(), row.plan_version.clone(), name))
        };
        Ok(named.map(|(function, version, name)| ExecutionSummary {
            durable_execution_arn: self.place.execution_arn(&function, &version, &name, row.run_id.as_str()),
            durable_execution_name: name,
            function_arn: self.place.function_arn(&function, &version),
            status: status_of(row),
            start_timestamp: row.created_at.into(),
            end_timestamp: row.finished_at.map(Into::into),
        }))
    }
}

/// What the row of an execution in this status says of its end.
fn outcome(status: ExecutionStatus) -> Option<String> {
    (status != ExecutionStatus::Running).then(|| status.as_str().to_owned())
}

fn status_of(row: &RunRow) -> ExecutionStatus {
    row.outcome.as_deref().and_then(ExecutionStatus::parse).unwrap_or(ExecutionStatus::Running)
}
