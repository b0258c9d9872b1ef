//! Who waits for what. Waiting costs an entry here and nothing else; a future that is dropped takes its entry along.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use servo_model::operation::OperationStatus;
use servo_replay::{Journal, Operation};

use super::queue::Queue;
use super::{ExecutionState, Inner};
use crate::DurableError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    /// An update has been recorded.
    Recorded(u64),
    /// Something outside this process happens to an operation.
    Operation { id: String, until: Until },
    /// The invocation is over.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It has an outcome.
    Finished,
    /// The delay before its next attempt is over.
    NotPending,
    /// This invocation cannot go on with it: the body is used up, and only the next invocation has another one.
    NextInvocation,
}

impl Until {
    fn is_met(self, operation: Option<&Operation>) -> bool {
        match self {
            Until::Finished => operation.is_some_and(|operation| operation.status.is_terminal()),
            Until::NotPending => operation.is_some_and(|operation| operation.status != OperationStatus::Pending),
            Until::NextInvocation => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Waiters {
    entries: BTreeMap<u64, (Want, Waker)>,
    next: u64,
}

impl Waiters {
    /// How many wait for something that happens outside this process.
    pub(super) fn parked(&self) -> usize {
        self.entries.values().filter(|(want, _)| matches!(want, Want::Operation { .. })).count()
    }

    /// Operations that this invocation can go on with once they change.
    pub(super) fn resumable(&self) -> impl Iterator<Item = &str> {
        self.entries.values().filter_map(|(want, _)| match want {
            Want::Operation { id, until: Until::Finished | Until::NotPending } => Some(id.as_str()),
            Want::Operation { until: Until::NextInvocation, .. } | Want::Recorded(_) | Want::Closed => None,
        })
    }

    pub(super) fn wake(&mut self, changes: &[String], queue: &Queue, journal: &Journal) {
        for (want, waker) in self.entries.values() {
            let met = match want {
                Want::Recorded(ticket) => queue.is_recorded(*ticket),
                Want::Operation { id, until } => {
                    changes.contains(id) && until.is_met(journal.get(id).map(AsRef::as_ref))
                }
                Want::Closed => false,
            };
            if met {
                waker.wake_by_ref();
            }
        }
    }

    pub(super) fn wake_all(&mut self) {
        for (_, waker) in std::mem::take(&mut self.entries).into_values() {
            waker.wake();
        }
    }
}

/// Ready when the want is met, or with `Suspend` after the invocation's end.
#[must_use]
struct Wait<'a> {
    state: &'a ExecutionState,
    want: Want,
    key: Option<u64>,
}

impl ExecutionState {
    pub(crate) async fn wait(&self, want: Want) -> Result<(), DurableError> {
        Wait { state: self, want, key: None }.await
    }
}

fn is_met(inner: &Inner, want: &Want) -> bool {
    match want {
        Want::Recorded(ticket) => inner.queue.is_recorded(*ticket),
        Want::Operation { id, until } => until.is_met(inner.journal.get(id).map(AsRef::as_ref)),
        Want::Closed => false,
    }
}

impl Future for Wait<'_> {
    type Output = Result<(), DurableError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = self.state;
        let mut inner = state.lock();
        if inner.closed {
            return Poll::Ready(Err(DurableError::Suspend { scheduled_timestamp: None }));
        }
        if is_met(&inner, &self.want) {
            return Poll::Ready(Ok(()));
        }
        let key = match self.key {
            Some(key) => key,
            None => {
                inner.waiters.next += 1;
                inner.changed();
                inner.waiters.next
            }
        };
        inner.waiters.entries.insert(key, (self.want.clone(), cx.waker().clone()));
        drop(inner);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let mut inner = self.state.lock();
            inner.waiters.entries.remove(&key);
            inner.changed();
        }
    }
}
