//! One execution and its clock. Every decision is folded as the store would hold it, and folded again from the encoded log,
//! so that memory and log can never tell different stories.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use servo_canon::Digest;
use servo_machine::{
    Action, Admission, Answer, CallbackAnswer, Checkpoint, Command, Decision, ExecutionCommand, Policy, Refusal, Run,
    Spawn, StartExecution, Used, decide,
};
use servo_model::event::{EventBody, ExecutionStarted, ParentOperation, idempotency_key};
use servo_model::execution::{Execution, Operation};
use servo_model::ids::Name;
use servo_model::operation::{
    CallbackOptions, ChainedInvokeOptions, ErrorObject, OperationAction, OperationType, OperationUpdate, StepOptions,
    WaitOptions,
};
use servo_model::{Event, EventId, PlanId, PlanRef, RunContext, RunId, RunState, TenantId, Timestamp};

use super::transitions;

pub(super) struct World {
    pub state: RunState,
    pub now: Timestamp,
    pub policy: Policy,
    pub log: Vec<Event>,
    /// Dispatches of the last decision: step and number.
    pub dispatched: Vec<(String, u32)>,
}

pub(super) fn start(durable: bool) -> StartExecution {
    let name = |text: &str| Name::parse(text).unwrap();
    StartExecution {
        start: ExecutionStarted {
            function: "f".to_owned(),
            version: "1".to_owned(),
            name: "n".to_owned(),
            durable,
            input: Some("{}".to_owned()),
            timeout_seconds: 100_000,
            invocation_timeout_seconds: 60,
            tenant_id: None,
            client_context: None,
            trace: None,
            parent: None,
            max_concurrent: None,
            synchronous: false,
            entrypoint: None,
            lineage: None,
        }
        .into(),
        plan_ref: PlanRef {
            uri: "function:f".to_owned(),
            sha256: Digest::of(b"f"),
            schema_version: "function/v1".to_owned(),
            plan_id: PlanId::parse("f").unwrap(),
            plan_version: "1".to_owned(),
        }
        .into(),
        context: RunContext {
            tenant_id: TenantId::default_tenant(),
            project_id: name("default"),
            environment_id: name("default"),
            triggered_by: None,
            trigger_source: None,
        }
        .into(),
        request_digest: None,
        run_request_id: None,
        admission: Admission::Now,
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(start(true))
    }

    pub(super) fn with(start: StartExecution) -> Self {
        Self::of("inv_1", start)
    }

    /// Of a run with another id.
    pub(super) fn named(run_id: &str) -> Self {
        Self::of(run_id, start(true))
    }

    fn of(run_id: &str, start: StartExecution) -> Self {
        let mut world = Self {
            state: RunState::new(RunId::parse(run_id).unwrap()),
            now: Timestamp::from_millis(1_800_000_000_000),
            policy: Policy::default(),
            log: Vec::new(),
            dispatched: Vec::new(),
        };
        let decision =
            decide(Run::New(&world.state.run_id), &Command::StartExecution(Box::new(start)), &world.policy, world.now)
                .unwrap();
        world.record(&decision);
        world
    }

    /// With the handler called for the first time.
    pub(super) fn running() -> Self {
        let mut world = Self::new();
        world.invoke();
        world
    }

    pub(super) fn execution(&self) -> &Execution {
        self.state.execution.as_deref().unwrap()
    }

    pub(super) fn operation(&self, id: &str) -> &Operation {
        self.execution().operation(id).unwrap_or_else(|| panic!("no operation {id}"))
    }

    pub(super) fn advance(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
    }

    fn record(&mut self, decision: &Decision) {
        self.dispatched = decision
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Dispatch { step_id, attempt } => Some((step_id.to_string(), *attempt)),
                _ => None,
            })
            .collect();
        for fact in &decision.facts {
            fact.body.check().unwrap();
            let (step, number) = fact.body.key_parts();
            let key = idempotency_key(&self.state.run_id, step, number, fact.body.event_type(), "1");
            assert!(self.log.iter().all(|event| event.idempotency_key != key), "a key twice: {:?}", fact.body);
            let event = Event {
                event_id: EventId::from_u128(self.log.len() as u128),
                run_id: self.state.run_id.clone(),
                run_seq: self.state.last_event_seq + 1,
                idempotency_key: key,
                emitted_at: self.now,
                emitted_by: "test".to_owned(),
                occurred_at: Some(self.now),
                body: EventBody::decode(fact.body.event_type(), &fact.body.encode()).unwrap(),
            };
            assert_eq!(event.body, fact.body, "what is stored is what was decided");
            let before = std::mem::replace(&mut self.state, RunState::new(event.run_id.clone()));
            self.state = before.clone().apply(&event).0;
            transitions::check(&before, &self.state);
            self.log.push(event);
        }
        let again = RunState::new(self.state.run_id.clone()).fold(&self.log);
        assert_eq!(again, self.state, "a fold of the log is the state");
        let stored = serde_json::to_string(&self.state).unwrap();
        assert_eq!(serde_json::from_str::<RunState>(&stored).unwrap(), self.state, "a stored snapshot is the state");
    }

    pub(super) fn execute(&mut self, command: &Command) -> Result<Vec<EventBody>, Refusal> {
        let decision = decide(Run::Known(&self.state), command, &self.policy, self.now)?;
        self.record(&decision);
        Ok(decision.facts.into_iter().map(|fact| fact.body).collect())
    }

    pub(super) fn run(&mut self, command: ExecutionCommand) -> Result<Vec<EventBody>, Refusal> {
        self.execute(&Command::Execution(Box::new(command)))
    }

    pub(super) fn tick(&mut self) -> Vec<EventBody> {
        self.execute(&Command::Tick).unwrap()
    }

    /// The next invocation.
    pub(super) fn invoke(&mut self) {
        let invocation = self.execution().head.invocations + 1;
        let request_id = format!("request-{invocation}");
        self.run(ExecutionCommand::Invoke { invocation, request_id }).unwrap();
    }

    pub(super) fn answer(&mut self, answer: Answer) -> Result<Vec<EventBody>, Refusal> {
        let invocation = self.execution().head.invocations;
        self.run(ExecutionCommand::Return { invocation, answer, used: Used::default() })
    }

    pub(super) fn call(&self, updates: Vec<OperationUpdate>) -> Checkpoint {
        let head = &self.execution().head;
        let callbacks = updates.iter().filter(|update| update.operation_type == OperationType::Callback);
        let callback_ids: BTreeMap<_, _> = callbacks.map(|u| (u.id.clone(), format!("cb-{}", u.id))).collect();
        let chained = updates.iter().filter_map(|update| Some((update, update.chained_invoke_options.as_ref()?)));
        let targets = chained.map(|(update, options)| {
            let target = if options.function_name == "missing" {
                Err(ErrorObject::new("ResourceNotFoundException", "Function not found: missing"))
            } else {
                let mut start = start(true);
                let run_id = self.state.run_id.clone();
                Arc::make_mut(&mut start.start).parent =
                    Some(ParentOperation { run_id, operation_id: update.id.clone() });
                Ok(Spawn { run_id: RunId::parse(&format!("inv_{}", update.id)).unwrap(), start: Box::new(start) })
            };
            (update.id.clone(), target)
        });
        Checkpoint {
            invocation: head.invocations,
            number: head.checkpoint.number,
            client_token: None,
            targets: targets.collect(),
            callback_ids,
            updates,
        }
    }

    pub(super) fn checkpoint(&mut self, updates: Vec<OperationUpdate>) -> Result<Vec<EventBody>, Refusal> {
        let call = self.call(updates);
        self.run(ExecutionCommand::Checkpoint(call))
    }

    pub(super) fn callback(&mut self, id: &str, answer: CallbackAnswer) -> Result<Vec<EventBody>, Refusal> {
        self.run(ExecutionCommand::Callback { operation_id: id.to_owned(), answer })
    }
}

fn update(id: &str, operation_type: OperationType, action: OperationAction) -> OperationUpdate {
    OperationUpdate::new(id, operation_type, action)
}

pub(super) fn step(id: &str, action: OperationAction) -> OperationUpdate {
    let mut update = update(id, OperationType::Step, action);
    match action {
        OperationAction::Succeed => update.payload = Some(format!("\"{id}\"")),
        OperationAction::Fail => update.error = Some(ErrorObject::new("Boom", id)),
        OperationAction::Retry => {
            update.error = Some(ErrorObject::new("Boom", id));
            update.step_options = Some(StepOptions::after_seconds(5));
        }
        OperationAction::Start | OperationAction::Cancel => {}
    }
    update
}

pub(super) fn context(id: &str, action: OperationAction) -> OperationUpdate {
    update(id, OperationType::Context, action)
}

pub(super) fn wait(id: &str, seconds: u64) -> OperationUpdate {
    let mut update = update(id, OperationType::Wait, OperationAction::Start);
    update.wait_options = Some(WaitOptions { wait_seconds: Some(seconds) });
    update
}

pub(super) fn cancel(id: &str) -> OperationUpdate {
    update(id, OperationType::Wait, OperationAction::Cancel)
}

pub(super) fn callback(id: &str, timeout: Option<u64>, heartbeat: Option<u64>) -> OperationUpdate {
    let mut update = update(id, OperationType::Callback, OperationAction::Start);
    update.callback_options = Some(CallbackOptions { timeout_seconds: timeout, heartbeat_timeout_seconds: heartbeat });
    update
}

pub(super) fn invoke(id: &str, function: &str) -> OperationUpdate {
    let mut update = update(id, OperationType::ChainedInvoke, OperationAction::Start);
    update.chained_invoke_options =
        Some(ChainedInvokeOptions { function_name: function.to_owned(), ..ChainedInvokeOptions::default() });
    update
}

pub(super) fn ending(action: OperationAction) -> OperationUpdate {
    update("execution-result-1", OperationType::Execution, action)
}

pub(super) fn inside(mut update: OperationUpdate, parent: &str) -> OperationUpdate {
    update.parent_id = Some(parent.to_owned());
    update
}
