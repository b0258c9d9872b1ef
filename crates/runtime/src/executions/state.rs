//! The state as a handler gets it: with its invocation, and page by page.

use serde::{Deserialize, Serialize};
use servo_model::execution::{Execution, Operation as Known};
use servo_model::operation::{OperationStatus, OperationType};
use servo_model::{RunId, RunState, TenantId, Timestamp};
use servo_store::Scope;
use servo_wire::lambda::{
    DurableExecutionInvocationInput, ExecutionDetails, GetStateResponse, InitialExecutionState, Millis, Operation,
    Seconds,
};

use super::seal::{Purpose, Token, mark_of};
use super::{Executions, Refused, of_a_token};

/// Payload bytes on one page.
const PAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
const PAGE_ITEMS_MAX: usize = 1_000;
const PAGE_ITEMS_DEFAULT: usize = 100;

/// Where the next page begins: at which operation, 0 being EXECUTION itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StateMarker {
    run: RunId,
    next: usize,
}

impl Executions {
    /// What the handler of a new invocation gets.
    pub(crate) fn envelope(&self, state: &RunState, execution: &Execution, tenant: &TenantId) -> String {
        let head = &execution.head;
        let arn = self.names_of(state).0;
        let token = Token {
            run: state.run_id.clone(),
            tenant: tenant.clone(),
            invocation: head.invocations,
            number: head.checkpoint.number,
            seen: state.last_event_seq,
            arn: Some(mark_of(&arn)),
        };
        let (operations, next_marker) = self.page::<Millis>(state, execution, 0, PAGE_ITEMS_MAX);
        let changed = execution.changed_after(head.seen_before).into_iter().map(|known| known.id.to_string());
        let input = DurableExecutionInvocationInput {
            durable_execution_arn: arn,
            checkpoint_token: self.close_token(&token),
            initial_execution_state: InitialExecutionState {
                operations,
                next_marker: Some(next_marker.unwrap_or_default()),
            },
            updated_operation_ids: if head.invocations > 1 { changed.collect() } else { Vec::new() },
        };
        serde_json::to_string(&input).expect("strings and numbers serialise")
    }

    pub async fn state(
        &self,
        tenant: &TenantId,
        arn: &str,
        token: &str,
        marker: Option<&str>,
        max_items: Option<usize>,
    ) -> Result<GetStateResponse, Refused> {
        let token = self.token(tenant, arn, token)?;
        let from = match marker.filter(|marker| !marker.is_empty()) {
            None => 0,
            Some(text) => {
                let marker: Option<StateMarker> = self.seal.open(Purpose::Marker, text);
                let marker = marker.filter(|marker| marker.run == token.run);
                marker.ok_or_else(|| Refused::invalid("Invalid marker"))?.next
            }
        };
        let items = page_items(max_items)?;
        let scope = Scope::Tenant(token.tenant.clone());
        let read = |state: &RunState| {
            let execution = state.execution.as_deref()?;
            let head = &execution.head;
            let current = head.invocation.is_some() && head.invocations == token.invocation && head.ended.is_none();
            // A read does not use the token up; one that a checkpoint has used up reads nothing any more.
            let current = current && head.checkpoint.number == token.number && !state.status.is_terminal();
            current.then(|| self.page::<Seconds>(state, execution, from, items))
        };
        let page = self.engine.view(&scope, &token.run, read).await.map_err(of_a_token)?;
        let (operations, next_marker) = page.ok_or_else(Refused::stale_token)?;
        Ok(GetStateResponse { operations, next_marker })
    }

    /// Operations from a number on, as many as fit, and the mark of the next page.
    fn page<T: From<Timestamp>>(
        &self,
        state: &RunState,
        execution: &Execution,
        from: usize,
        items: usize,
    ) -> (Vec<Operation<T>>, Option<String>) {
        let mut operations = Vec::new();
        let mut bytes = 0;
        let mark = |next: usize| {
            let marker = StateMarker { run: state.run_id.clone(), next };
            Some(self.seal.close(Purpose::Marker, self.engine.ids().nonce(), &marker))
        };
        if from == 0 {
            let input = &execution.head.start.input;
            bytes += input.as_ref().map_or(0, String::len);
            operations.push(execution_operation(state, execution));
        }
        for (number, known) in (1..).zip(execution.operations()).skip(from.saturating_sub(1)) {
            if execution.is_hidden(known) {
                continue;
            }
            bytes += size(known);
            if !operations.is_empty() && (operations.len() >= items || bytes > PAGE_BYTES_MAX) {
                return (operations, mark(number));
            }
            operations.push(known.into());
        }
        (operations, None)
    }
}

pub(super) fn page_items(asked: Option<usize>) -> Result<usize, Refused> {
    match asked {
        None | Some(0) => Ok(PAGE_ITEMS_DEFAULT),
        Some(items) if items <= PAGE_ITEMS_MAX => Ok(items),
        Some(_) => Err(Refused::invalid(format!("MaxItems is from 0 to {PAGE_ITEMS_MAX}"))),
    }
}

fn size(known: &Known) -> usize {
    let error = known.error.as_ref().map_or(0, servo_model::operation::ErrorObject::len);
    400 + known.result.as_ref().map_or(0, String::len) + error
}

/// The execution as an operation of itself. Its id is the last part of the ARN, where SDKs look for it.
fn execution_operation<T: From<Timestamp>>(state: &RunState, execution: &Execution) -> Operation<T> {
    Operation {
        id: state.run_id.to_string(),
        parent_id: None,
        name: Some(execution.head.start.name.clone()),
        operation_type: OperationType::Execution,
        sub_type: None,
        start_timestamp: execution.head.started_at.into(),
        end_timestamp: None,
        status: OperationStatus::Started,
        execution_details: Some(ExecutionDetails { input_payload: execution.head.start.input.clone() }),
        context_details: None,
        step_details: None,
        wait_details: None,
        callback_details: None,
        chained_invoke_details: None,
    }
}
