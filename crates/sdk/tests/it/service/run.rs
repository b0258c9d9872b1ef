//! Whole executions: invoke, look at the answer, let time pass, invoke again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_sdk::{
    DurableExecutionInvocationInput, DurableExecutionInvocationOutput, DurableServiceClient, ErrorObject, Handler,
    InitialExecutionState, InvocationError, InvocationStatus, Options, ServiceError, handle,
};
use servo_wire::lambda::{
    CheckpointRequest, CheckpointResponse, GetStateResponse, Millis, NewExecutionState, Operation, Seconds,
};

use super::clock::VirtualClock;
use super::rules;
use super::store::{Answer, Call, Fault, Recorded, Store};

const INVOCATIONS_MAX: usize = 300;
/// Failed invocations in a row.
const FAILURES_MAX: usize = 5;

/// One execution and the service that keeps it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    store: Store,
    token: u64,
    last: Option<(String, CheckpointResponse)>,
    calls: Vec<Call>,
    /// Calls that came in, carried out or not.
    attempts: usize,
    in_flight: usize,
    faults: BTreeMap<usize, Fault>,
    crashed: bool,
    /// Operations in one page of the state; the first page is empty then.
    page: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) status: InvocationStatus,
    pub(crate) result: Option<String>,
    pub(crate) error: Option<ErrorObject>,
    pub(crate) output: DurableExecutionInvocationOutput,
    pub(crate) invocations: usize,
    pub(crate) crashes: usize,
    pub(crate) reinvocations: usize,
}

impl World {
    pub(crate) fn new(input: &str) -> Self {
        // The clock starts in our days, so that seconds and milliseconds cannot be confused.
        let clock = VirtualClock::at(1_790_000_000_000);
        let inner = Inner {
            store: Store::new(clock.millis(), input),
            token: 0,
            last: None,
            calls: Vec::new(),
            attempts: 0,
            in_flight: 0,
            faults: BTreeMap::new(),
            crashed: false,
            page: None,
        };
        Self { clock, inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// From 1, counting every call that comes in.
    pub(crate) fn fault(self, call: usize, fault: Fault) -> Self {
        self.lock().faults.insert(call, fault);
        self
    }

    pub(crate) fn paged(self, page: usize) -> Self {
        self.lock().page = Some(page);
        self
    }

    /// A function that can be invoked, and what it answers after so many seconds.
    pub(crate) fn function(self, name: &str, seconds: i64, answer: Answer) -> Self {
        self.lock().store.functions.insert(name.into(), (seconds * 1_000, answer));
        self
    }

    /// What the outside world answers to a callback of that name, so many seconds after it was made.
    pub(crate) fn answer(self, callback: &str, seconds: i64, answer: Answer) -> Self {
        self.lock().store.answers.insert(callback.into(), (seconds * 1_000, answer));
        self
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub(crate) fn operations(&self) -> Vec<Recorded> {
        self.lock().store.operations.clone()
    }

    /// Lets the process die where it is. The caller must not go on.
    pub(crate) async fn crash(&self) -> ! {
        self.lock().crashed = true;
        loop {
            std::future::pending::<()>().await;
        }
    }

    /// Calls that came in, carried out or not.
    pub(crate) fn attempts(&self) -> usize {
        self.lock().attempts
    }

    pub(crate) fn named(&self, name: &str) -> Recorded {
        let found = self.operations().into_iter().find(|operation| operation.name.as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("no operation is called {name}"))
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: Arc::new(self.clock.clone()), ..Options::default() }
    }

    pub(crate) fn run<E, R>(&self, handler: impl Handler<E, R>) -> Report
    where
        E: DeserializeOwned + Send,
        R: Serialize + Send,
    {
        self.run_with(handler, self.options())
    }

    /// Invokes until the execution is over.
    #[expect(clippy::needless_pass_by_value, reason = "tests read better when they hand over what they made")]
    pub(crate) fn run_with<E, R>(&self, handler: impl Handler<E, R>, options: Options) -> Report
    where
        E: DeserializeOwned + Send,
        R: Serialize + Send,
    {
        let (mut crashes, mut reinvocations, mut failures) = (0, 0, 0);
        for invocations in 1..=INVOCATIONS_MAX {
            match self.invoke(&handler, options.clone()) {
                None => crashes += 1,
                Some(Err(error)) => {
                    failures += 1;
                    reinvocations += 1;
                    assert!(failures <= FAILURES_MAX, "invoked {failures} times in vain: {error}");
                }
                Some(Ok(output)) => {
                    failures = 0;
                    if output.status != InvocationStatus::Pending {
                        return self.report(output, invocations, crashes, reinvocations);
                    }
                    self.pass_time();
                }
            }
        }
        panic!("no end after {INVOCATIONS_MAX} invocations");
    }

    fn report(
        &self,
        output: DurableExecutionInvocationOutput,
        invocations: usize,
        crashes: usize,
        reinvocations: usize,
    ) -> Report {
        let (mut result, mut error) = (output.result.clone(), output.error.clone());
        match self.lock().store.ended.clone() {
            Some(Ok(text)) => result = Some(text),
            Some(Err(object)) => error = Some(object),
            None => {}
        }
        Report { status: output.status, result, error, output, invocations, crashes, reinvocations }
    }

    /// A suspended execution must wait for something; time passes until that happens.
    fn pass_time(&self) {
        let (waiting, news, due) = {
            let inner = self.lock();
            (inner.store.is_waiting(), inner.store.has_news(), inner.store.next_due())
        };
        assert!(waiting || news, "Cannot return PENDING status with no pending operations.");
        if !news {
            let due = due.expect("a suspended execution whose time never comes");
            self.clock.advance_to(due);
            let now = self.clock.millis();
            self.lock().store.tick(now);
        }
    }

    /// One invocation. None when the process died.
    pub(crate) fn invoke<E, R>(
        &self,
        handler: &impl Handler<E, R>,
        options: Options,
    ) -> Option<Result<DurableExecutionInvocationOutput, InvocationError>>
    where
        E: DeserializeOwned + Send,
        R: Serialize + Send,
    {
        let input = {
            let mut inner = self.lock();
            inner.token += 1;
            inner.crashed = false;
            inner.in_flight = 0;
            inner.last = None;
            let now = self.clock.millis();
            inner.store.tick(now);
            inner.store.news();
            let operations = inner.store.visible();
            let (operations, next_marker) = match inner.page {
                Some(_) => (Vec::new(), Some("0".to_owned())),
                None => (operations, Some(String::new())),
            };
            DurableExecutionInvocationInput {
                durable_execution_arn: "arn:aws:lambda:eu-west-1:123456789012:function:f:1/durable-execution/t/exec-1"
                    .into(),
                checkpoint_token: inner.token.to_string(),
                initial_execution_state: InitialExecutionState {
                    operations: operations.into_iter().map(through_json::<Millis>).collect(),
                    next_marker,
                },
                updated_operation_ids: Vec::new(),
            }
        };
        let call = |event, ctx| handler.call(event, ctx);
        let future = handle(call, input, Arc::new(self.clone()), options);
        self.clock.drive(future, || self.lock().crashed)
    }

    fn refuse(status: u16, code: &str, message: &str) -> ServiceError {
        ServiceError::Refused { status, code: code.into(), message: message.into() }
    }
}

/// As it would come over the wire.
fn through_json<T>(operation: Recorded) -> Operation<T>
where
    T: From<servo_model::Timestamp> + Serialize + DeserializeOwned,
{
    let text = serde_json::to_string(&operation.with_time::<T>()).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[async_trait]
impl DurableServiceClient for World {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        assert!(arn.ends_with("/exec-1"));
        let fault = {
            let mut inner = self.lock();
            assert_eq!(inner.in_flight, 0, "DX-081: calls are serial");
            inner.in_flight += 1;
            inner.attempts += 1;
            let attempt = inner.attempts;
            inner.faults.get(&attempt).copied()
        };
        // A call takes time: others get their turn while it is under way.
        tokio::task::yield_now().await;
        if fault == Some(Fault::CrashBefore) {
            self.lock().crashed = true;
            std::future::pending::<()>().await;
        }
        let mut inner = self.lock();
        inner.in_flight -= 1;
        match fault {
            Some(Fault::Throttled) => return Err(Self::refuse(429, "TooManyRequestsException", "slow down")),
            Some(Fault::Unavailable) => return Err(Self::refuse(500, "ServiceException", "internal")),
            Some(Fault::StaleToken(text)) => return Err(Self::refuse(400, "InvalidParameterValueException", text)),
            Some(Fault::Refused) => return Err(Self::refuse(400, "InvalidParameterValueException", "no")),
            _ => {}
        }
        let repeated = request.client_token.as_ref();
        if let Some((token, response)) = &inner.last
            && repeated == Some(token)
        {
            return Ok(response.clone());
        }
        if request.checkpoint_token != inner.token.to_string() {
            return Err(Self::refuse(400, "InvalidParameterValueException", "Invalid checkpoint token: superseded"));
        }
        let now = self.clock.millis();
        inner.store.tick(now);
        let updates = request.updates.unwrap_or_default();
        rules::check(&inner.store, &updates)
            .map_err(|message| Self::refuse(400, "InvalidParameterValueException", &message))?;
        updates.iter().for_each(|update| inner.store.apply(update));
        inner.calls.push(Call { at: now, updates });
        inner.token += 1;
        let withdrawn = fault == Some(Fault::Withdrawn);
        let over = inner.store.ended.is_some() || withdrawn;
        let operations = if withdrawn { Vec::new() } else { inner.store.news() };
        let response = CheckpointResponse {
            checkpoint_token: (!over).then(|| inner.token.to_string()),
            new_execution_state: NewExecutionState {
                operations: operations.into_iter().map(through_json::<Seconds>).collect(),
                next_marker: None,
            },
        };
        inner.last = request.client_token.map(|token| (token, response.clone()));
        if fault == Some(Fault::CrashAfter) {
            // The executor looks before it polls again, so the answer reaches nobody.
            inner.crashed = true;
        }
        if fault == Some(Fault::LostAnswer) {
            return Err(ServiceError::Unreachable("connection reset".into()));
        }
        Ok(response)
    }

    async fn get_state(&self, _arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        let inner = self.lock();
        assert_eq!(token, inner.token.to_string(), "state is read with the current token");
        let page = inner.page.expect("only a paged state is asked for");
        let from: usize = marker.parse().unwrap();
        let all = inner.store.visible();
        let operations = all.iter().skip(from).take(page).cloned().map(through_json::<Seconds>).collect();
        let next = from + page;
        Ok(GetStateResponse { operations, next_marker: (next < all.len()).then(|| next.to_string()) })
    }
}
