//! The ports of a hub: opened and removed, looked at, and watched by whoever supervises the process behind one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use servo_adapter::HandlerFailure;
use servo_model::RunId;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::{Hub, Outstanding};
use crate::port::{LastWord, Port, PortId, WorkerKind, WorkerView};
use crate::supervise::lines::Drain;

/// How long an answer may wait for what was written before it.
const DRAIN_MAX: Duration = Duration::from_millis(100);

/// An invocation, and the run that it belongs to.
pub(crate) type Owner = (String, RunId);

impl Hub {
    pub(crate) fn open(&self, kind: WorkerKind, version: Option<String>, address: SocketAddr) -> PortId {
        let mut state = self.state();
        // Never used twice: a request may still be open at a port that was removed.
        state.tickets += 1;
        let id = state.tickets;
        state.ports.insert(id, Port::new(kind, version, address));
        id
    }

    /// The address for outside workers of a version, or of any, if there is one.
    pub(crate) fn open_address(&self, version: Option<&str>) -> Option<SocketAddr> {
        let state = self.state();
        let mut open = state.ports.values().filter(|port| port.kind == WorkerKind::Pull);
        open.find(|port| port.version.as_deref() == version).map(|port| port.address)
    }

    /// The version whose worker a run's call waits for.
    pub(crate) fn awaited_version(&self, run_id: &RunId) -> Option<String> {
        let state = self.state();
        state
            .waiting
            .values()
            .find(|waiting| waiting.call.run_id == *run_id)
            .map(|waiting| waiting.call.version.clone())
    }

    /// Addresses at which workers can ask.
    pub(crate) fn ports(&self) -> usize {
        self.state().ports.len()
    }

    pub(crate) fn remove(&self, port: PortId) {
        self.state().ports.remove(&port);
        // Requests that wait there must not swallow wake-ups.
        self.wake();
    }

    pub(crate) fn with_port(&self, port: PortId, change: impl FnOnce(&mut Port)) {
        if let Some(port) = self.state().ports.get_mut(&port) {
            change(port);
        }
    }

    /// The process behind the port is gone, and with it the calls it had. `error` makes that of a call.
    pub(crate) fn fail_port(&self, port: PortId, error: impl Fn(&str) -> HandlerFailure) {
        let lost: Vec<Outstanding> = {
            let state = self.state();
            let here = state.taken.iter().filter(|(_, taken)| taken.port == port);
            here.map(|(id, taken)| Outstanding { request_id: id.clone(), ticket: taken.ticket }).collect()
        };
        for outstanding in lost {
            let error = error(&outstanding.request_id);
            self.give_up(&[outstanding], &error);
        }
    }

    /// Ready when what the worker wrote until now is with the invocation that it has just answered. Where another one is still
    /// under way, nobody could say whose a line without an end is.
    pub(crate) async fn drained(&self, port: PortId) {
        let asked: Vec<oneshot::Receiver<()>> = {
            let state = self.state();
            let written = state.ports.get(&port).filter(|at| !at.readers.is_empty());
            let readers = written.filter(|_| state.in_flight(port) == 0);
            let ask = |reader: &mpsc::UnboundedSender<Drain>| {
                let (drain, drained) = oneshot::channel();
                reader.send(drain).ok().map(|()| drained)
            };
            readers.into_iter().flat_map(|port| &port.readers).filter_map(ask).collect()
        };
        if asked.is_empty() {
            return;
        }
        // A process that never stops writing is never drained.
        let _ = timeout(DRAIN_MAX, futures_util::future::join_all(asked)).await;
    }

    /// The calls that the process behind the port has, and what it wrote last.
    pub(crate) fn left_behind(&self, port: PortId) -> (Vec<Owner>, Vec<LastWord>) {
        let state = self.state();
        let Some(at) = state.ports.get(&port) else { return Default::default() };
        let taken = |id: &str| state.taken.get(id).is_some_and(|taken| taken.port == port);
        let owners = at.recent.iter().filter(|(id, _)| taken(id)).cloned().collect();
        (owners, at.last_words.iter().cloned().collect())
    }

    pub(crate) fn views(&self) -> Vec<WorkerView> {
        let state = self.state();
        let view = |(id, port): (&PortId, &Port)| WorkerView {
            tenant: self.tenant.clone(),
            function: self.function.clone(),
            kind: port.kind,
            version: port.version.clone(),
            address: port.address,
            pollers: port.pollers,
            in_flight: state.in_flight(*id),
            waiting: state.waiting.len(),
            restarts: port.restarts,
            last_exit: port.last_exit.clone(),
        };
        state.ports.iter().map(view).collect()
    }

    /// Whose line it is. What a line says itself counts only for invocations that this port's worker really had: a handler
    /// must not write into the logs of others.
    pub(crate) fn owner_of_line(&self, port: PortId, named: Option<&str>, run: Option<&RunId>) -> Option<Owner> {
        let state = self.state();
        let recent = &state.ports.get(&port)?.recent;
        let said = recent.iter().rev().find(|(id, of)| named.is_some_and(|n| n == id) || run.is_some_and(|r| r == of));
        if let Some(said) = said {
            return Some(said.clone());
        }
        let mut here = state.taken.iter().filter(|(_, taken)| taken.port == port).map(|(id, _)| id);
        match (here.next(), here.next()) {
            (Some(only), None) => recent.iter().rev().find(|(id, _)| id == only).cloned(),
            (Some(_), Some(_)) => None,
            // Lines and answers come on different ways: the answer may have been faster.
            (None, _) => recent.back().cloned(),
        }
    }

    /// Ready when no call is out at this port.
    pub(crate) async fn idle(&self, port: PortId) {
        self.watch(port, |hub| (hub.state().in_flight(port) == 0).then_some(())).await;
    }

    /// Ready when the worker has been silent past the deadline of a call that was given up: it has nothing else to do,
    /// and does not ask for more.
    pub(crate) async fn stuck(&self, port: PortId) {
        loop {
            let deadline = self.watch(port, |hub| hub.state().ports.get(&port).and_then(|port| port.abandoned)).await;
            tokio::time::sleep_until(deadline).await;
            let mut state = self.state();
            let busy = state.in_flight(port) > 0;
            let Some(at) = state.ports.get_mut(&port) else { continue };
            if at.abandoned.is_some_and(|deadline| deadline <= Instant::now()) {
                at.abandoned = None;
                if at.pollers == 0 && !busy {
                    return;
                }
            }
        }
    }

    /// Looks again at every change of the port until there is something to see; for ever, if the port is gone.
    async fn watch<T>(&self, port: PortId, look: impl Fn(&Self) -> Option<T>) -> T {
        let changed: Option<Arc<Notify>> = self.state().ports.get(&port).map(|port| port.changed.clone());
        let Some(changed) = changed else { return std::future::pending().await };
        loop {
            let mut notified = std::pin::pin!(changed.notified());
            notified.as_mut().enable();
            if let Some(seen) = look(self) {
                return seen;
            }
            notified.await;
        }
    }
}
