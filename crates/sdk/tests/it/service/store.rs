//! The books of one execution.

use std::collections::BTreeMap;

use servo_model::Timestamp;
use servo_model::operation::{ErrorObject, OperationAction as A, OperationStatus as S, OperationType as T};
use servo_sdk::OperationUpdate;
use servo_wire::lambda::{
    CallbackDetails, ChainedInvokeDetails, ContextDetails, ExecutionDetails, Operation, StepDetails, WaitDetails,
};

pub(crate) type Recorded = Operation<Timestamp>;
pub(crate) type Answer = Result<String, ErrorObject>;

/// What goes wrong at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies before the service has seen the call.
    CrashBefore,
    /// The process dies after the service has carried the call out.
    CrashAfter,
    /// The call is carried out and its answer is lost; the caller may repeat it.
    LostAnswer,
    /// 429.
    Throttled,
    /// 500.
    Unavailable,
    /// The token is refused, in the spelling given.
    StaleToken(&'static str),
    /// Any other refusal.
    Refused,
    /// The call is carried out, and the right to make another is withdrawn.
    Withdrawn,
}

/// One call that was carried out.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) at: i64,
    pub(crate) updates: Vec<OperationUpdate>,
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) now: i64,
    pub(crate) operations: Vec<Recorded>,
    sequence: u64,
    touched: BTreeMap<String, u64>,
    pub(crate) seen: u64,
    /// The end of the execution, when it was recorded by a checkpoint.
    pub(crate) ended: Option<Answer>,
    pub(crate) functions: BTreeMap<String, (i64, Answer)>,
    /// Callbacks are answered so long after they were made, by name.
    pub(crate) answers: BTreeMap<String, (i64, Answer)>,
    due: Vec<(i64, String, S, Answer)>,
}

impl Store {
    pub(crate) fn new(now: i64, input: &str) -> Self {
        let execution = Recorded {
            id: "exec-1".into(),
            parent_id: None,
            name: Some("test".into()),
            operation_type: T::Execution,
            sub_type: None,
            start_timestamp: Timestamp::from_millis(now),
            end_timestamp: None,
            status: S::Started,
            execution_details: Some(ExecutionDetails { input_payload: Some(input.into()) }),
            context_details: None,
            step_details: None,
            wait_details: None,
            callback_details: None,
            chained_invoke_details: None,
        };
        Self {
            now,
            operations: vec![execution],
            sequence: 0,
            touched: BTreeMap::new(),
            seen: 0,
            ended: None,
            functions: BTreeMap::new(),
            answers: BTreeMap::new(),
            due: Vec::new(),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Recorded> {
        self.operations.iter().find(|operation| operation.id == id)
    }

    fn touch(&mut self, id: &str) {
        self.sequence += 1;
        self.touched.insert(id.into(), self.sequence);
    }

    /// What changed since the handler last looked, in the order of creation.
    pub(crate) fn news(&mut self) -> Vec<Recorded> {
        let seen = std::mem::replace(&mut self.seen, self.sequence);
        let is_new = |operation: &&Recorded| self.touched.get(&operation.id).is_some_and(|at| *at > seen);
        self.operations.iter().filter(is_new).cloned().collect()
    }

    pub(crate) fn has_news(&self) -> bool {
        self.seen < self.sequence
    }

    /// What an invocation is told: children of finished contexts are left out unless they are needed.
    pub(crate) fn visible(&self) -> Vec<Recorded> {
        let hidden = |operation: &Recorded| {
            let mut parent = operation.parent_id.clone();
            while let Some(context) = parent.and_then(|id| self.get(&id).cloned()) {
                let again =
                    context.context_details.as_ref().is_some_and(|details| details.replay_children == Some(true));
                if context.status.is_terminal() && !again {
                    return true;
                }
                parent = context.parent_id;
            }
            false
        };
        self.operations.iter().filter(|operation| !hidden(operation)).cloned().collect()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.operations.iter().any(|operation| match operation.operation_type {
            T::Step => operation.status == S::Pending,
            T::Wait | T::Callback | T::ChainedInvoke => operation.status == S::Started,
            T::Execution | T::Context => false,
        })
    }

    /// The next moment at which something happens by itself.
    pub(crate) fn next_due(&self) -> Option<i64> {
        let open = self.operations.iter().filter(|operation| !operation.status.is_terminal());
        let timers = open.filter_map(|operation| {
            let wait = operation.wait_details.as_ref().and_then(|details| details.scheduled_end_timestamp);
            let retry = operation.step_details.as_ref().and_then(|details| details.next_attempt_timestamp);
            wait.or(retry).map(Timestamp::as_millis)
        });
        timers.chain(self.due.iter().map(|(at, ..)| *at)).min()
    }

    /// Lets everything happen whose time has come.
    pub(crate) fn tick(&mut self, now: i64) {
        self.now = now;
        let at = Timestamp::from_millis(now);
        let mut changed = Vec::new();
        for operation in &mut self.operations {
            if let Some(wait) = &operation.wait_details
                && operation.status == S::Started
                && wait.scheduled_end_timestamp.is_some_and(|end| end <= at)
            {
                operation.status = S::Succeeded;
                operation.end_timestamp = Some(at);
                changed.push(operation.id.clone());
            }
            if let Some(step) = &mut operation.step_details
                && operation.status == S::Pending
                && step.next_attempt_timestamp.is_some_and(|end| end <= at)
            {
                operation.status = S::Ready;
                step.next_attempt_timestamp = None;
                changed.push(operation.id.clone());
            }
        }
        let (due, rest): (Vec<_>, Vec<_>) = self.due.drain(..).partition(|(when, ..)| *when <= now);
        self.due = rest;
        for (_, id, status, answer) in due {
            let Some(operation) = self.operations.iter_mut().find(|operation| operation.id == id) else { continue };
            if operation.status.is_terminal() {
                continue;
            }
            operation.status = status;
            let (result, error) = (answer.clone().ok(), answer.err());
            match (&mut operation.callback_details, &mut operation.chained_invoke_details) {
                (Some(details), _) => (details.result, details.error) = (result, error),
                (_, Some(details)) => (details.result, details.error) = (result, error),
                (None, None) => {}
            }
            changed.push(id);
        }
        changed.iter().for_each(|id| self.touch(id));
    }

    /// Carries out an update that was checked.
    pub(crate) fn apply(&mut self, update: &OperationUpdate) {
        if update.operation_type == T::Execution {
            self.ended = Some(match update.error.clone() {
                Some(error) => Err(error),
                None => Ok(update.payload.clone().unwrap_or_default()),
            });
            return;
        }
        self.touch(&update.id);
        if self.get(&update.id).is_none() {
            let operation = self.create(update);
            self.operations.push(operation);
            return;
        }
        let now = self.now;
        let Some(operation) = self.operations.iter_mut().find(|operation| operation.id == update.id) else { return };
        operation.status = match update.action {
            A::Start => S::Started,
            A::Succeed => S::Succeeded,
            A::Fail => S::Failed,
            A::Retry => S::Pending,
            A::Cancel => S::Cancelled,
        };
        if let Some(step) = &mut operation.step_details
            && update.action != A::Start
        {
            step.attempt += 1;
            (step.result, step.error) = (update.payload.clone(), update.error.clone());
            let delay = update.step_options.and_then(|options| options.next_attempt_delay_seconds);
            step.next_attempt_timestamp = delay.map(|delay| Timestamp::from_millis(now + delay as i64 * 1_000));
        }
        if let Some(context) = &mut operation.context_details {
            (context.result, context.error) = (update.payload.clone(), update.error.clone());
            context.replay_children = update.context_options.and_then(|options| options.replay_children);
        }
    }

    fn create(&mut self, update: &OperationUpdate) -> Recorded {
        let mut operation = Recorded {
            id: update.id.clone(),
            parent_id: update.parent_id.clone(),
            name: update.name.clone(),
            operation_type: update.operation_type,
            sub_type: update.sub_type.clone(),
            start_timestamp: Timestamp::from_millis(self.now),
            end_timestamp: None,
            status: S::Started,
            execution_details: None,
            context_details: None,
            step_details: None,
            wait_details: None,
            callback_details: None,
            chained_invoke_details: None,
        };
        match update.operation_type {
            T::Execution => {}
            T::Context => operation.context_details = Some(ContextDetails::default()),
            T::Step => {
                let details = StepDetails { attempt: 0, next_attempt_timestamp: None, result: None, error: None };
                operation.step_details = Some(details);
            }
            T::Wait => {
                let seconds = update.wait_options.and_then(|options| options.wait_seconds).unwrap_or(1);
                let end = Timestamp::from_millis(self.now + seconds as i64 * 1_000);
                operation.wait_details = Some(WaitDetails { scheduled_end_timestamp: Some(end) });
            }
            T::Callback => {
                let callback_id = Some(format!("cb{}", self.operations.len()));
                operation.callback_details = Some(CallbackDetails { callback_id, result: None, error: None });
                self.plan_callback(update);
            }
            T::ChainedInvoke => {
                operation.chained_invoke_details = Some(ChainedInvokeDetails::default());
                let function = update.chained_invoke_options.as_ref().map(|options| options.function_name.clone());
                match self.functions.get(&function.unwrap_or_default()) {
                    Some((delay, answer)) => {
                        let status = if answer.is_ok() { S::Succeeded } else { S::Failed };
                        self.due.push((self.now + delay, update.id.clone(), status, answer.clone()));
                    }
                    None => {
                        operation.status = S::Failed;
                        let error = ErrorObject::new("ResourceNotFoundException", "no such function");
                        operation.chained_invoke_details =
                            Some(ChainedInvokeDetails { result: None, error: Some(error) });
                    }
                }
            }
        }
        operation
    }

    fn plan_callback(&mut self, update: &OperationUpdate) {
        let answer = update.name.as_ref().and_then(|name| self.answers.get(name)).cloned();
        let options = update.callback_options.unwrap_or_default();
        let seconds = |seconds: u64| seconds as i64 * 1_000;
        if let Some((delay, answer)) = answer {
            let status = if answer.is_ok() { S::Succeeded } else { S::Failed };
            self.due.push((self.now + delay, update.id.clone(), status, answer));
        }
        if let Some(timeout) = options.timeout_seconds {
            let error = ErrorObject::new("Callback.Timeout", "Callback timed out");
            self.due.push((self.now + seconds(timeout), update.id.clone(), S::TimedOut, Err(error)));
        }
        if let Some(timeout) = options.heartbeat_timeout_seconds {
            let error = ErrorObject::new("Callback.Heartbeat", "Callback timed out on heartbeat");
            self.due.push((self.now + seconds(timeout), update.id.clone(), S::TimedOut, Err(error)));
        }
    }
}
