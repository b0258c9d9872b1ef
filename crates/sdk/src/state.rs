//! What one invocation knows and still has to say: the journal, the queue of updates, and who waits for what.
//!
//! Operations put updates in and wait here; `pump` takes updates out and brings answers back. Nothing here does IO.

mod queue;
mod wait;
mod wake;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use servo_model::Timestamp;
use servo_replay::{Divergence, Identity, Journal, Operation};
use servo_wire::lambda::OperationUpdate;

use crate::logger::Logger;
use crate::options::Options;
use crate::plugin::{OperationInfo, Plugin};
use crate::{CheckpointingMode, DurableError};

pub(crate) use queue::Next;
use queue::Queue;
use wait::Waiters;
pub(crate) use wait::{Until, Want};
pub(crate) use wake::WakeFlag;

/// Why an invocation ends before its handler returns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    /// Nothing runs and something is waited for.
    Suspend,
    /// The service has taken back the right to record.
    Withdrawn,
    /// The handler had returned, and everything is recorded.
    Drained,
    /// The execution has failed for good.
    Fail(DurableError),
    /// The invocation has failed and is to be repeated.
    Reinvoke(DurableError),
}

pub struct ExecutionState {
    arn: String,
    started_at: Timestamp,
    input: Option<String>,
    options: Options,
    pub(crate) handler_wake: Arc<WakeFlag>,
    inner: Mutex<Inner>,
}

struct Inner {
    journal: Journal,
    queue: Queue,
    waiters: Waiters,
    /// Bodies of steps that are under way.
    running: usize,
    stop: Option<Stop>,
    /// The handler has returned.
    finishing: bool,
    /// The invocation is over.
    closed: bool,
    /// Grows with every change that the pump may have to act on.
    version: u64,
    pump: Option<Waker>,
}

impl Inner {
    fn changed(&mut self) {
        self.version += 1;
        if let Some(pump) = self.pump.take() {
            pump.wake();
        }
    }
}

impl fmt::Debug for ExecutionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionState").field("arn", &self.arn).finish_non_exhaustive()
    }
}

/// Counts a body as running until it is dropped.
pub(crate) struct Running<'a>(&'a ExecutionState);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.running -= 1;
        inner.changed();
    }
}

impl ExecutionState {
    pub(crate) fn new(arn: String, execution: &Operation, journal: Journal, options: Options) -> Self {
        let input = execution.execution_details.as_ref().and_then(|details| details.input_payload.clone());
        let now = options.clock.now();
        let inner = Inner {
            journal,
            queue: Queue::new(&options, now),
            waiters: Waiters::default(),
            running: 0,
            stop: None,
            finishing: false,
            closed: false,
            version: 0,
            pump: None,
        };
        Self {
            arn,
            started_at: execution.start_timestamp,
            input,
            options,
            handler_wake: Arc::default(),
            inner: Mutex::new(inner),
        }
    }

    /// A panic while the lock is held cannot leave a half-made change: user code never runs under it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// When the execution began, by the service's clock.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub fn get_original_input(&self) -> Option<&str> {
        self.input.as_deref()
    }

    /// Whether a context (the handler's own without an id) still walks through what was recorded before.
    pub fn is_replaying(&self, context: Option<&str>) -> bool {
        self.lock().journal.is_replaying(context)
    }

    /// Whether something under this context may no longer be recorded.
    pub fn is_orphaned(&self, context: &str) -> bool {
        self.lock().journal.check_parent("", Some(context)).is_err()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn logger(&self) -> &dyn Logger {
        self.options.logger.as_ref()
    }

    pub(crate) fn hook(&self, name: &'static str, run: impl Fn(&dyn Plugin) -> Result<(), crate::BoxError>) {
        crate::plugin::call(&self.options.plugins, name, run);
    }

    pub(crate) fn mode(&self) -> CheckpointingMode {
        self.options.checkpointing_mode
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    pub(crate) fn lookup(&self, id: &str, identity: &Identity) -> Result<Option<Arc<Operation>>, Divergence> {
        self.lock().journal.lookup(id, identity)
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Operation>> {
        self.lock().journal.get(id).cloned()
    }

    /// Whether an update for this operation is still to be sent.
    pub(crate) fn is_queued(&self, id: &str) -> bool {
        self.lock().queue.holds(id)
    }

    /// Puts an update in line. The ticket says when it has been recorded.
    pub(crate) fn enqueue(&self, update: OperationUpdate, awaited: bool) -> Result<u64, DurableError> {
        let now = self.now();
        let mut inner = self.lock();
        inner.journal.check_parent(&update.id, update.parent_id.as_deref())?;
        let ticket = inner.queue.push(update, awaited, now);
        inner.changed();
        Ok(ticket)
    }

    pub(crate) fn open_context(&self, id: &str, parent: Option<&str>) {
        self.lock().journal.open_context(id, parent);
    }

    pub(crate) fn finish_context(&self, id: &str) {
        self.lock().journal.finish_context(id);
    }

    pub(crate) fn running(&self) -> Running<'_> {
        self.lock().running += 1;
        Running(self)
    }

    /// Ends the invocation. The caller never goes on: the handler is dropped, and a task that outlives it learns that the
    /// execution is suspended.
    pub(crate) async fn terminate(&self, stop: Stop) -> DurableError {
        {
            let mut inner = self.lock();
            inner.stop.get_or_insert(stop);
            inner.changed();
        }
        match self.wait(Want::Closed).await {
            Ok(()) => DurableError::Suspend { scheduled_timestamp: None },
            Err(error) => error,
        }
    }

    /// The handler has returned; what is left in the queue goes out, with this at its end.
    pub(crate) fn finish(&self, last: Option<OperationUpdate>) {
        let now = self.now();
        let mut inner = self.lock();
        inner.finishing = true;
        if let Some(update) = last {
            inner.queue.push(update, true, now);
        }
        inner.changed();
    }

    /// The invocation is over. Whoever still waits, in a task of its own, is let go.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.waiters.wake_all();
    }

    // What follows is for the pump.

    pub(crate) fn next(&self) -> Next {
        let now = self.now();
        let mut inner = self.lock();
        let inner = &mut *inner;
        if let Some(stop) = inner.stop.clone() {
            return Next::Stop(stop);
        }
        let parked = inner.waiters.parked();
        let quiet = inner.running == 0 && parked > 0 && !self.handler_wake.is_set();
        let flush_all = quiet || inner.finishing;
        if let Some(updates) = inner.queue.take(now, flush_all) {
            return Next::Send(updates);
        }
        if inner.finishing {
            return Next::Stop(Stop::Drained);
        }
        let poll_at = inner.queue.poll_at(&inner.journal, &inner.waiters);
        let stays = poll_at.is_some_and(|at| at <= now.plus(self.options.stay_awake));
        if quiet && (self.options.stay_awake.is_zero() || !stays) {
            return Next::Settle(inner.version);
        }
        if poll_at.is_some_and(|at| at <= now) {
            return Next::Send(Vec::new());
        }
        let flush_at = inner.queue.flush_at();
        let at = [poll_at, flush_at].into_iter().flatten().min();
        Next::Wait { version: inner.version, at }
    }

    /// Whether nothing has changed since the pump decided to suspend.
    pub(crate) fn is_settled(&self, version: u64) -> bool {
        self.lock().version == version && !self.handler_wake.is_set()
    }

    /// The service has recorded `count` updates and says what changed.
    pub(crate) fn accept(&self, count: usize, operations: Vec<Operation>) {
        let now = self.now();
        let mut changes = Vec::new();
        {
            let mut inner = self.lock();
            let inner = &mut *inner;
            inner.queue.accepted(count, now);
            for operation in operations {
                let id = operation.id.clone();
                if inner.journal.merge(operation) {
                    changes.push(id);
                }
            }
            inner.queue.answered(now, count > 0 || !changes.is_empty());
            let Inner { waiters, queue, journal, .. } = inner;
            waiters.wake(&changes, queue, journal);
            inner.changed();
        }
        if !self.options.plugins.is_empty() {
            for operation in changes.iter().filter_map(|id| self.get(id)) {
                let info = self.info(&operation);
                self.hook("on_operation_change", |plugin| plugin.on_operation_change(&info));
            }
        }
    }

    pub(crate) fn info(&self, operation: &Operation) -> OperationInfo {
        let (result, error) = operation.outcome();
        OperationInfo {
            durable_execution_arn: self.arn.clone(),
            operation_id: operation.id.clone(),
            operation_type: operation.operation_type,
            sub_type: operation.sub_type.clone(),
            name: operation.name.clone(),
            parent_id: operation.parent_id.clone(),
            status: Some(operation.status),
            is_replay: false,
            result: result.map(str::to_owned),
            error: error.cloned(),
        }
    }

    /// Ready when something has happened after `version`.
    pub(crate) fn poll_changed(&self, version: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.version != version {
            return Poll::Ready(());
        }
        inner.pump = Some(cx.waker().clone());
        Poll::Pending
    }
}
