//! Workers that were not heard when they should have been: noted once, and once more when they are heard again.

use servo_model::contract::RuntimeEvent;

use super::{Hub, Taken};
use crate::listener::Connection;
use crate::port::{Port, PortId, Silent, WorkerKind};

impl Hub {
    /// A worker has gone silent with a call.
    pub(super) fn stalled_with(&self, taken: &Taken, request_id: &str, how: &str) {
        let silent = Silent {
            request_id: Some(request_id.to_owned()),
            connection: taken.connection,
            newest_connection: Connection::newest(),
        };
        self.silent(taken.port, silent, &format!("{how}, on {request_id}"));
    }

    /// The process behind a port is gone.
    pub(crate) fn stalled(&self, port: PortId, how: &str) {
        let silent = Silent { request_id: None, connection: None, newest_connection: Connection::newest() };
        self.silent(port, silent, how);
    }

    fn silent(&self, port: PortId, silent: Silent, reason: &str) {
        let noted = {
            let mut state = self.state();
            let Some(at) = state.ports.get_mut(&port) else { return };
            // One process has one silence, however many calls it had.
            let known = at.kind == WorkerKind::Supervised && !at.silent.is_empty();
            if !known {
                at.put_silent(silent);
            }
            (!known).then(|| self.worker(at))
        };
        if let Some(worker) = noted {
            self.watch.note(RuntimeEvent::WorkerStalled { worker, reason: reason.to_owned() });
        }
    }

    /// Somebody asks for work. At a private port it can only be its process; elsewhere it is the silent worker if it asks where it
    /// asked before, or one that took its place if the connection is newer.
    pub(super) fn heard_asking(&self, port: PortId, connection: Option<u64>) {
        self.heard(port, "asks for work", |at, silent| {
            at == WorkerKind::Supervised
                || connection.is_none_or(|now| silent.connection == Some(now) || now > silent.newest_connection)
        });
    }

    /// An answer came, be it too late.
    pub(super) fn heard_answering(&self, port: PortId, request_id: &str) {
        self.heard(port, "answered", |_, silent| silent.request_id.as_deref() == Some(request_id));
    }

    fn heard(&self, port: PortId, recovery: &str, is_it: impl Fn(WorkerKind, &Silent) -> bool) {
        let (worker, count) = {
            let mut state = self.state();
            let Some(at) = state.ports.get_mut(&port).filter(|at| !at.silent.is_empty()) else { return };
            let (kind, before) = (at.kind, at.silent.len());
            at.silent.retain(|silent| !is_it(kind, silent));
            (self.worker(at), before - at.silent.len())
        };
        for _ in 0..count {
            self.watch.note(RuntimeEvent::WorkerRecovered { worker: worker.clone(), recovery: recovery.to_owned() });
        }
    }

    /// Workers have no names of their own: they are whoever asks at an address.
    fn worker(&self, port: &Port) -> String {
        format!("{}/{} at {}", self.tenant, self.function, port.address)
    }
}
