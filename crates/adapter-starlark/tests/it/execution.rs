//! One durable execution with a service that keeps its operations in memory, by the rules of the API: what the engine does,
//! as far as a handler can see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_adapter::{DurableService, HandlerFailure, Handlers as _};
use servo_model::function::Code;
use servo_model::operation::{ErrorObject, OperationAction, OperationStatus, OperationType, OperationUpdate};
use servo_model::{TenantId, Timestamp};
use servo_wire::lambda::{
    CallbackDetails, ChainedInvokeDetails, CheckpointRequest, CheckpointResponse, ContextDetails,
    DurableExecutionInvocationInput, DurableExecutionInvocationOutput, ExecutionDetails, GetStateResponse,
    InitialExecutionState, InvocationStatus, NewExecutionState, Operation, Seconds, StepDetails, WaitDetails,
};

use crate::support::{NOW_MILLIS, World, call_of, code};

const ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:f:1/durable-execution/e/inv_1";

#[derive(Default)]
struct State {
    operations: BTreeMap<String, Operation<Seconds>>,
    /// Ids in the order of their first update.
    order: Vec<String>,
    updates: Vec<OperationUpdate>,
    checkpoints: usize,
    now: i64,
    token: u64,
    /// When callbacks time out.
    deadlines: BTreeMap<String, i64>,
    /// What time has changed, to be told with the next checkpoint.
    changed: Vec<String>,
    page: Option<usize>,
    /// What the service answers in place of recording, after so many checkpoints.
    refusals: Vec<(usize, ErrorObject)>,
}

#[derive(Clone)]
pub(crate) struct Execution {
    state: Arc<Mutex<State>>,
    code: Code,
}

fn at(millis: i64) -> Seconds {
    Seconds(Timestamp::from_millis(millis))
}

impl Execution {
    pub(crate) fn new(world: &World, source: &str, input: &str) -> Self {
        Self::with(world, code(source), input)
    }

    pub(crate) fn with(world: &World, code: Code, input: &str) -> Self {
        let mut state = State { now: NOW_MILLIS, ..State::default() };
        let details = ExecutionDetails { input_payload: Some(input.to_owned()) };
        let execution = Operation { execution_details: Some(details), ..blank("inv_1", OperationType::Execution) };
        state.order.push(execution.id.clone());
        state.operations.insert(execution.id.clone(), execution);
        let execution = Self { state: Arc::new(Mutex::new(state)), code };
        world.starlark.bind(Arc::new(execution.clone()));
        execution
    }

    /// The same execution with another program.
    pub(crate) fn change_source(&mut self, source: &str) {
        self.code = code(source);
    }

    /// Pages of so many operations.
    pub(crate) fn paged(self, page: usize) -> Self {
        self.state.lock().unwrap().page = Some(page);
        self
    }

    pub(crate) async fn try_invoke(&self, world: &World) -> Result<DurableExecutionInvocationOutput, HandlerFailure> {
        let payload = {
            let mut state = self.state.lock().unwrap();
            state.token += 1;
            state.changed.clear();
            let (operations, next_marker) = state.page_at(0);
            let input = DurableExecutionInvocationInput {
                durable_execution_arn: ARN.to_owned(),
                checkpoint_token: state.token.to_string(),
                initial_execution_state: InitialExecutionState {
                    operations: operations
                        .into_iter()
                        .map(|operation| operation.with_time::<Timestamp>().with_time())
                        .collect(),
                    next_marker,
                },
                updated_operation_ids: Vec::new(),
            };
            serde_json::to_string(&input).unwrap()
        };
        let reply = world.starlark.call(Box::new(call_of(self.code.clone(), true, &payload))).await?;
        Ok(serde_json::from_str(&reply.text).unwrap())
    }

    pub(crate) async fn invoke(&self, world: &World) -> DurableExecutionInvocationOutput {
        self.try_invoke(world).await.unwrap()
    }

    /// Invokes and expects the program to wait.
    pub(crate) async fn suspends(&self, world: &World) {
        let output = self.invoke(world).await;
        assert_eq!(output.status, InvocationStatus::Pending, "{output:?}");
    }

    /// Invokes and expects a result.
    pub(crate) async fn returns(&self, world: &World) -> serde_json::Value {
        let output = self.invoke(world).await;
        assert_eq!(output.status, InvocationStatus::Succeeded, "{output:?}");
        serde_json::from_str(&output.result.unwrap()).unwrap()
    }

    pub(crate) async fn fails(&self, world: &World) -> servo_model::invocation::Failure {
        let output = self.invoke(world).await;
        assert_eq!(output.status, InvocationStatus::Failed, "{output:?}");
        servo_model::invocation::Failure::of(&output.error.unwrap())
    }

    /// Lets time pass: waits end, retries become ready, callbacks time out.
    pub(crate) fn advance(&self, seconds: i64) {
        let mut state = self.state.lock().unwrap();
        state.now += seconds * 1_000;
        let now = at(state.now);
        let deadlines = state.deadlines.clone();
        let mut changed = Vec::new();
        for operation in state.operations.values_mut() {
            let wait_over =
                operation.wait_details.as_ref().and_then(|d| d.scheduled_end_timestamp).is_some_and(|t| t <= now);
            let retry =
                operation.step_details.as_ref().and_then(|d| d.next_attempt_timestamp).is_some_and(|t| t <= now);
            let late = deadlines.get(&operation.id).is_some_and(|deadline| at(*deadline) <= now);
            let status = match operation.status {
                OperationStatus::Started if wait_over => OperationStatus::Succeeded,
                OperationStatus::Pending if retry => OperationStatus::Ready,
                OperationStatus::Started if late => OperationStatus::TimedOut,
                status => status,
            };
            if status != operation.status {
                operation.status = status;
                changed.push(operation.id.clone());
            }
        }
        state.changed.extend(changed);
    }

    /// Completes an operation that waits for somebody outside.
    pub(crate) fn answer(&self, name: &str, outcome: Result<&str, ErrorObject>) {
        let mut state = self.state.lock().unwrap();
        let waiting = |operation: &&mut Operation<Seconds>| {
            operation.status == OperationStatus::Started
                && (operation.name.as_deref() == Some(name) || operation.operation_type == OperationType::ChainedInvoke)
        };
        let operation = state.operations.values_mut().find(waiting).unwrap();
        let (result, error) = match outcome {
            Ok(text) => (Some(text.to_owned()), None),
            Err(error) => (None, Some(error)),
        };
        operation.status = if error.is_none() { OperationStatus::Succeeded } else { OperationStatus::Failed };
        match operation.operation_type {
            OperationType::Callback => {
                let callback_id = operation.callback_details.as_ref().and_then(|details| details.callback_id.clone());
                operation.callback_details = Some(CallbackDetails { callback_id, result, error });
            }
            _ => operation.chained_invoke_details = Some(ChainedInvokeDetails { result, error }),
        }
    }

    /// Completes some call of another function, if one is open.
    pub(crate) fn answer_call(&self, result: &str) -> bool {
        let mut state = self.state.lock().unwrap();
        let open = state.operations.values_mut().find(|operation| {
            operation.status == OperationStatus::Started && operation.operation_type == OperationType::ChainedInvoke
        });
        let Some(operation) = open else { return false };
        operation.status = OperationStatus::Succeeded;
        operation.chained_invoke_details = Some(ChainedInvokeDetails { result: Some(result.to_owned()), error: None });
        true
    }

    pub(crate) fn statuses(&self) -> Vec<OperationStatus> {
        self.state.lock().unwrap().operations.values().map(|operation| operation.status).collect()
    }

    /// The next checkpoint is answered with this error.
    pub(crate) fn refuse_next(&self, error: ErrorObject) {
        self.refuse_after(self.checkpoints(), error);
    }

    /// The checkpoint after so many is answered with this error, once.
    pub(crate) fn refuse_after(&self, checkpoints: usize, error: ErrorObject) {
        self.state.lock().unwrap().refusals.push((checkpoints, error));
    }

    /// Returns once so many updates are recorded.
    pub(crate) async fn until_told(&self, updates: usize) {
        while self.state.lock().unwrap().updates.len() < updates {
            tokio::task::yield_now().await;
        }
    }

    /// Refusals that were not given yet.
    pub(crate) fn refusals(&self) -> usize {
        self.state.lock().unwrap().refusals.len()
    }

    pub(crate) fn checkpoints(&self) -> usize {
        self.state.lock().unwrap().checkpoints
    }

    pub(crate) fn updates(&self) -> Vec<OperationUpdate> {
        self.state.lock().unwrap().updates.clone()
    }

    /// Updates in short: type, sub type, name, action.
    pub(crate) fn told(&self) -> Vec<String> {
        let short = |update: OperationUpdate| {
            let name = update.name.unwrap_or_else(|| "-".to_owned());
            let sub_type = update.sub_type.unwrap_or_default();
            format!("{}/{sub_type} {name} {}", update.operation_type.as_str(), update.action.as_str())
        };
        self.updates().into_iter().map(short).collect()
    }
}

impl State {
    fn page_at(&self, from: usize) -> (Vec<Operation<Seconds>>, Option<String>) {
        let size = self.page.unwrap_or(usize::MAX);
        let ids = self.order.iter().skip(from).take(size);
        let operations: Vec<_> = ids.map(|id| self.operations[id].clone()).collect();
        let next = from + operations.len();
        (operations, (next < self.order.len()).then(|| next.to_string()))
    }

    fn apply(&mut self, update: &OperationUpdate) {
        if !self.operations.contains_key(&update.id) {
            let mut operation = blank(&update.id, update.operation_type);
            operation.parent_id = update.parent_id.clone();
            operation.name = update.name.clone();
            operation.sub_type = update.sub_type.clone();
            self.order.push(update.id.clone());
            self.operations.insert(update.id.clone(), operation);
        }
        let now = self.now;
        let operation = self.operations.get_mut(&update.id).unwrap();
        assert!(!operation.status.is_terminal(), "an outcome is final: {update:?}");
        let (result, error) = (update.payload.clone(), update.error.clone());
        operation.status = match update.action {
            OperationAction::Start => OperationStatus::Started,
            OperationAction::Succeed => OperationStatus::Succeeded,
            OperationAction::Fail => OperationStatus::Failed,
            OperationAction::Retry => OperationStatus::Pending,
            OperationAction::Cancel => OperationStatus::Cancelled,
        };
        match update.operation_type {
            OperationType::Step => {
                let before = operation.step_details.as_ref().map_or(0, |details| details.attempt);
                let ended = u32::from(update.action != OperationAction::Start);
                let delay = update.step_options.map(|options| {
                    let rounded = options.next_attempt_delay_seconds.unwrap() * 1_000;
                    options.next_attempt_delay_millis.unwrap_or(rounded)
                });
                let next = delay.map(|millis| at(now + i64::try_from(millis).unwrap()));
                operation.step_details =
                    Some(StepDetails { attempt: before + ended, next_attempt_timestamp: next, result, error });
            }
            OperationType::Context => {
                let replay_children = update.context_options.and_then(|options| options.replay_children);
                operation.context_details = Some(ContextDetails { replay_children, result, error });
            }
            OperationType::Wait => {
                let seconds = update.wait_options.and_then(|options| options.wait_seconds).unwrap();
                let end = at(now + i64::try_from(seconds).unwrap() * 1_000);
                operation.wait_details = Some(WaitDetails { scheduled_end_timestamp: Some(end) });
            }
            OperationType::Callback => {
                let callback_id = Some(format!("callback-{}", update.id));
                operation.callback_details = Some(CallbackDetails { callback_id, result: None, error: None });
                if let Some(seconds) = update.callback_options.and_then(|options| options.timeout_seconds) {
                    self.deadlines.insert(update.id.clone(), now + i64::try_from(seconds).unwrap() * 1_000);
                }
            }
            OperationType::ChainedInvoke => {
                assert!(update.chained_invoke_options.is_some());
            }
            OperationType::Execution => panic!("a handler here does not end its execution itself"),
        }
    }
}

#[async_trait]
impl DurableService for Execution {
    async fn checkpoint(
        &self,
        _tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, ErrorObject> {
        assert_eq!(arn, ARN);
        let mut state = self.state.lock().unwrap();
        let checkpoints = state.checkpoints;
        if let Some(at) = state.refusals.iter().position(|(after, _)| *after == checkpoints) {
            return Err(state.refusals.remove(at).1);
        }
        assert_eq!(request.checkpoint_token, state.token.to_string(), "each call has the token of the last");
        state.token += 1;
        state.checkpoints += 1;
        let updates = request.updates.unwrap_or_default();
        for update in &updates {
            state.apply(update);
        }
        let mut operations: Vec<_> = updates.iter().map(|update| state.operations[&update.id].clone()).collect();
        operations.dedup_by(|a, b| a.id == b.id);
        let changed = std::mem::take(&mut state.changed);
        operations.extend(changed.iter().map(|id| state.operations[id].clone()));
        state.updates.extend(updates);
        Ok(CheckpointResponse {
            checkpoint_token: Some(state.token.to_string()),
            new_execution_state: NewExecutionState { operations, next_marker: None },
        })
    }

    async fn state(
        &self,
        _tenant: &TenantId,
        _arn: &str,
        _token: &str,
        marker: &str,
    ) -> Result<GetStateResponse, ErrorObject> {
        let (operations, next_marker) = self.state.lock().unwrap().page_at(marker.parse().unwrap());
        Ok(GetStateResponse { operations, next_marker })
    }
}

fn blank(id: &str, operation_type: OperationType) -> Operation<Seconds> {
    Operation {
        id: id.to_owned(),
        parent_id: None,
        name: None,
        operation_type,
        sub_type: None,
        start_timestamp: at(NOW_MILLIS),
        end_timestamp: None,
        status: OperationStatus::Started,
        execution_details: None,
        context_details: None,
        step_details: None,
        wait_details: None,
        callback_details: None,
        chained_invoke_details: None,
    }
}
