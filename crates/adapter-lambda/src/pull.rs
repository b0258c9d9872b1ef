//! Handlers that ask: the calls of one function, in order, and the ports at which its workers take them.
//!
//! A call is first waiting, then taken, then answered; when its future is dropped it is forgotten, and an answer that
//! comes later is not known any more. No lock is held across an await.

mod ports;
mod silence;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderValue;
use servo_adapter::{HandlerCall, HandlerFailure, Reply, Right, Standing, Usage, WorkerWatch};
use servo_model::{RunId, TenantId, Timestamp};
use servo_sched::Counter;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

pub(crate) use ports::Owner;

use crate::failure;
use crate::port::{Port, PortId, WorkerKind};
use crate::settings::{NowFn, Parts, Settings};

pub(crate) type Answer = Result<String, HandlerFailure>;

pub(crate) struct Hub {
    pub(crate) tenant: TenantId,
    pub(crate) function: String,
    pub(crate) settings: Settings,
    now: NowFn,
    watch: Arc<dyn WorkerWatch>,
    /// For answers that are being read, of all functions together.
    pub(crate) bodies: Counter<TenantId>,
    state: Mutex<State>,
    /// A call came.
    asked: Notify,
}

#[derive(Default)]
struct State {
    tickets: u64,
    /// By ticket, so in the order in which they came.
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: usize,
    /// By request id.
    taken: HashMap<String, Taken>,
    ports: BTreeMap<PortId, Port>,
    closed: bool,
}

struct Waiting {
    call: Box<HandlerCall>,
    /// Told when a worker takes it.
    take: oneshot::Sender<Instant>,
    reply: oneshot::Sender<Answer>,
}

/// A call that waits, as its caller sees it.
struct Put {
    ticket: u64,
    taken: oneshot::Receiver<Instant>,
    answer: oneshot::Receiver<Answer>,
}

struct Taken {
    ticket: u64,
    port: PortId,
    /// Where the worker asked, unless it is one of ours.
    connection: Option<u64>,
    /// That connection has ended.
    hung_up: bool,
    deadline: Instant,
    reply: oneshot::Sender<Answer>,
}

/// A call on its way to a worker.
pub(crate) struct Handed {
    pub(crate) call: Box<HandlerCall>,
    pub(crate) deadline: Timestamp,
}

/// A call that was taken, named so that a later one with the same request id is not meant.
pub(crate) struct Outstanding {
    request_id: String,
    ticket: u64,
}

enum Take {
    Call(Box<Handed>),
    /// There is one, of a run that may be another node's by now.
    InDoubt(Right),
    Nothing,
    Never,
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Nobody took the call until now.
fn waited(failure: HandlerFailure, began: Instant) -> HandlerFailure {
    let usage = Usage { waited_ms: millis(began.elapsed()), ..failure.usage };
    HandlerFailure { usage, ..failure }
}

impl Hub {
    pub(crate) fn new(tenant: TenantId, function: String, parts: &Parts, bodies: Counter<TenantId>) -> Self {
        let (settings, now, watch) = (parts.settings.clone(), parts.now.clone(), parts.watch.clone());
        Self { tenant, function, settings, now, watch, bodies, state: Mutex::default(), asked: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a worker, and then for its answer. The function's time begins when the worker takes the call.
    pub(crate) async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        let (request_id, timeout, began) = (call.request_id.clone(), call.timeout, Instant::now());
        let Put { ticket, mut taken, answer } = self.put(call)?;
        let _forget = Forget { hub: self, request_id, ticket };
        let since = loop {
            tokio::select! {
                biased;
                at = &mut taken => match at {
                    Ok(at) => break at,
                    // It was failed before anybody took it.
                    Err(_) => {
                        let failed = answer.await.unwrap_or_else(|_| Err(stopping()));
                        return failed.map(Reply::from).map_err(|failure| waited(failure, began));
                    }
                },
                () = crate::tasks::sleep(self.settings.worker_wait) => {
                    if let Some(failure) = self.give_back(ticket, began) {
                        return Err(waited(failure, began));
                    }
                }
            }
        };
        let waited_ms = millis(since.duration_since(began));
        let answer = match tokio::time::timeout_at(since + timeout, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(HandlerFailure::crashed(failure::EXIT, "the invocation was given up")),
            Err(_) => Err(failure::timed_out(timeout)),
        };
        let usage = Usage { waited_ms, ..Usage::default() };
        answer.map(|text| Reply { text, usage }).map_err(|failure| HandlerFailure { usage, ..failure })
    }

    /// A call that nobody has taken, unless somebody has in this moment. It holds one of the node's slots, which the functions of
    /// others want as well: it comes back later, however busy its workers are.
    fn give_back(&self, ticket: u64, began: Instant) -> Option<HandlerFailure> {
        let mut state = self.state();
        // With the lock, so that nobody takes what is called again.
        let Waiting { call, .. } = state.waiting.remove(&ticket)?;
        state.waiting_bytes -= call.payload.len();
        let (function, version, waited) = (&self.function, &call.version, began.elapsed());
        let mut serving = state.ports.iter().filter(|(_, port)| port.serves(version));
        let is_busy = serving.any(|(id, port)| !port.draining && state.in_flight(*id) > 0);
        let advice = if is_busy { "all are busy, start more" } else { "start one" };
        let mut message =
            format!("no worker of `{function}` took the call of version {version} in {waited:.0?}; {advice}");
        if let Some(last_exit) = state.ports.values().filter_map(|port| port.last_exit.as_deref()).next_back() {
            message.push_str(&format!(" (the last one ended: {last_exit})"));
        }
        Some(HandlerFailure::unreached(failure::NO_WORKER, message))
    }

    fn put(&self, call: Box<HandlerCall>) -> Result<Put, HandlerFailure> {
        if HeaderValue::from_str(&call.request_id).is_err() {
            let message = "the request id has characters that no header can carry";
            return Err(HandlerFailure::crashed(failure::INVALID_RESPONSE, message));
        }
        let (reply, answer) = oneshot::channel();
        let (take, taken) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(stopping());
        }
        let bytes = state.waiting_bytes.saturating_add(call.payload.len());
        if state.waiting.len() >= self.settings.waiting_max || bytes > self.settings.waiting_bytes_max {
            let waiting = state.waiting.len();
            let message =
                format!("{waiting} calls of `{}` wait for a worker already; start more workers", self.function);
            return Err(HandlerFailure::unreached(failure::TOO_MANY, message));
        }
        state.waiting_bytes = bytes;
        state.tickets += 1;
        let ticket = state.tickets;
        state.waiting.insert(ticket, Waiting { call, take, reply });
        drop(state);
        self.wake();
        Ok(Put { ticket, taken, answer })
    }

    /// Wakes somebody who can take a call: anybody, as long as all of them can.
    fn wake(&self) {
        if self.state().ports.values().any(|port| port.version.is_some()) {
            self.asked.notify_waiters();
        } else {
            self.asked.notify_one();
        }
    }

    /// The next call for a worker at this port; waits until there is one. `connection` is where it asks.
    pub(crate) async fn next(&self, port: PortId, connection: Option<u64>) -> Handed {
        self.heard_asking(port, connection);
        let _polling = Polling::begin(self, port);
        loop {
            let mut asked = std::pin::pin!(self.asked.notified());
            // Before looking: a call that comes in between wakes somebody who will look.
            asked.as_mut().enable();
            match self.take(port, connection) {
                Take::Call(handed) => return *handed,
                Take::Nothing => asked.await,
                // Not to be handed over unless this node still has the run, which shows in a moment.
                Take::InDoubt(right) => tokio::select! {
                    () = asked => {}
                    holds = right.holds() => if !holds { self.fail_passed_on() },
                },
                Take::Never => {
                    // The wake-up that brought us here was for somebody who may take calls.
                    self.wake();
                    return std::future::pending().await;
                }
            }
        }
    }

    fn take(&self, port: PortId, connection: Option<u64>) -> Take {
        let mut state = self.state();
        let state = &mut *state;
        let Some(at) = state.ports.get_mut(&port).filter(|at| !at.draining) else { return Take::Never };
        let mut served = state.waiting.iter().filter(|(_, waiting)| at.serves(&waiting.call.version));
        let mut in_doubt = None;
        let next = served.find(|(_, waiting)| {
            let right = &waiting.call.right;
            right.is_held() || {
                in_doubt.get_or_insert_with(|| right.clone());
                false
            }
        });
        let next = next.map(|(ticket, _)| *ticket);
        let Some((ticket, waiting)) = next.and_then(|ticket| state.waiting.remove_entry(&ticket)) else {
            return in_doubt.map_or(Take::Nothing, Take::InDoubt);
        };
        let Waiting { call, take, reply } = waiting;
        state.waiting_bytes -= call.payload.len();
        at.remember(&call.request_id, &call.run_id);
        if !at.last_words.is_empty() && !state.taken.values().any(|taken| taken.port == port) {
            // Those of another call.
            at.last_words.clear();
        }
        // The end of a supervised process is the better sign: clients may close connections for reasons of their own.
        let connection = connection.filter(|_| at.kind == WorkerKind::Pull);
        let since = Instant::now();
        let taken = Taken { ticket, port, connection, hung_up: false, deadline: since + call.timeout, reply };
        state.taken.insert(call.request_id.clone(), taken);
        // Nobody waits: the call was dropped at the same moment, and is forgotten next.
        let _ = take.send(since);
        // On the clock that workers see; ours is one that nobody sets.
        let deadline = (self.now)().plus(call.timeout);
        Take::Call(Box::new(Handed { call, deadline }))
    }

    /// Fails the waiting calls of runs that another node has taken over.
    fn fail_passed_on(&self) {
        let mut state = self.state();
        let state = &mut *state;
        let passed_on = state.waiting.extract_if(.., |_, waiting| waiting.call.right.standing() == Standing::PassedOn);
        for (_, Waiting { call, reply, .. }) in passed_on {
            state.waiting_bytes -= call.payload.len();
            let _ = reply.send(Err(HandlerFailure::unreached(failure::EXIT, "another node has taken the run over")));
        }
    }

    /// Whether somebody still waits for this answer.
    pub(crate) fn answer(&self, port: PortId, request_id: &str, answer: Answer) -> bool {
        self.heard_answering(port, request_id);
        let mut state = self.state();
        if let Some(port) = state.ports.get_mut(&port) {
            port.abandoned = None;
        }
        let Some(taken) = state.taken.remove(request_id) else { return false };
        state.changed(taken.port);
        drop(state);
        taken.reply.send(answer).is_ok()
    }

    /// A worker could not begin. If nobody else is there, waiting calls learn why instead of waiting for their deadline.
    pub(crate) fn init_failed(&self, error: &HandlerFailure) {
        let mut state = self.state();
        if state.taken.is_empty() && state.ports.values().all(|port| port.pollers == 0) {
            state.fail_waiting(error);
        }
    }

    /// A connection has ended. Calls that were taken on it go on.
    pub(crate) fn hung_up(&self, connection: u64) {
        for taken in self.state().taken.values_mut().filter(|taken| taken.connection == Some(connection)) {
            taken.hung_up = true;
        }
    }

    /// Fails those of the calls that are still not answered.
    pub(crate) fn give_up(&self, lost: &[Outstanding], error: &HandlerFailure) {
        for Outstanding { request_id, ticket } in lost {
            let mut state = self.state();
            if state.taken.get(request_id).is_some_and(|taken| taken.ticket == *ticket)
                && let Some(taken) = state.taken.remove(request_id)
            {
                state.changed(taken.port);
                drop(state);
                // Nobody waits: the call was dropped at the same moment.
                let _ = taken.reply.send(Err(error.clone()));
            }
        }
    }

    /// Takes no more calls in, and fails those that no worker has.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.fail_waiting(&stopping());
    }

    /// Fails also those that a worker has.
    pub(crate) fn abort(&self) {
        let mut state = self.state();
        for (_, taken) in std::mem::take(&mut state.taken) {
            state.changed(taken.port);
            let failure =
                HandlerFailure::crashed(failure::EXIT, "this node is stopping, and the worker did not answer before");
            let _ = taken.reply.send(Err(failure));
        }
    }

    fn forget(&self, request_id: &str, ticket: u64) {
        let mut state = self.state();
        if let Some(waiting) = state.waiting.remove(&ticket) {
            state.waiting_bytes -= waiting.call.payload.len();
            return;
        }
        if state.taken.get(request_id).is_some_and(|taken| taken.ticket == ticket)
            && let Some(taken) = state.taken.remove(request_id)
        {
            if let Some(port) = state.ports.get_mut(&taken.port) {
                port.abandoned = port.abandoned.max(Some(taken.deadline));
            }
            state.changed(taken.port);
            drop(state);
            // Otherwise nobody wanted the answer any more, which is not the worker's fault.
            if taken.deadline <= Instant::now() {
                let how = if taken.hung_up {
                    "closed its connection and did not answer in time"
                } else {
                    "did not answer in time"
                };
                self.stalled_with(&taken, request_id, how);
            }
        }
    }
}

impl State {
    fn changed(&self, port: PortId) {
        if let Some(port) = self.ports.get(&port) {
            port.changed.notify_waiters();
        }
    }

    fn in_flight(&self, port: PortId) -> usize {
        self.taken.values().filter(|taken| taken.port == port).count()
    }

    fn fail_waiting(&mut self, error: &HandlerFailure) {
        self.waiting_bytes = 0;
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            let _ = waiting.reply.send(Err(error.clone()));
        }
    }
}

/// Of a call that no worker has.
fn stopping() -> HandlerFailure {
    HandlerFailure::unreached(failure::EXIT, "this node is stopping")
}

/// Forgets the call however its future ends.
struct Forget<'a> {
    hub: &'a Hub,
    request_id: String,
    ticket: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.hub.forget(&self.request_id, self.ticket);
    }
}

/// Counts a request for the next call while it is open.
struct Polling<'a> {
    hub: &'a Hub,
    port: PortId,
}

impl<'a> Polling<'a> {
    fn begin(hub: &'a Hub, port: PortId) -> Self {
        if let Some(port) = hub.state().ports.get_mut(&port) {
            port.pollers += 1;
            port.abandoned = None;
        }
        Self { hub, port }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        if let Some(port) = self.hub.state().ports.get_mut(&self.port) {
            port.pollers = port.pollers.saturating_sub(1);
        }
    }
}

/// The run that an execution's ARN names: its last part.
pub(crate) fn run_of(execution_arn: &str) -> Option<RunId> {
    execution_arn.rsplit('/').next().and_then(|id| RunId::parse(id).ok())
}
