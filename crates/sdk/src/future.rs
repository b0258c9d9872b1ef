//! The future of one operation. Its type does not name the closure inside, so that futures of different operations fit into
//! one list, and so that the compiler need not look through the closure to see that a handler may change threads.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tracing::Instrument as _;

use crate::op::Op;

/// An operation that has its id and place in the program, and starts when it is first polled.
#[must_use = "an operation does nothing until it is awaited"]
pub struct DurableFuture<'a, O> {
    operation_id: String,
    inner: BoxFuture<'a, O>,
}

impl<'a, O> DurableFuture<'a, O> {
    pub(crate) fn new<Fut: Future<Output = O> + Send + 'a>(op: Op, run: impl FnOnce(Op) -> Fut) -> Self {
        let (operation_id, span) = (op.id.clone(), op.span());
        Self { operation_id, inner: Box::pin(run(op).instrument(span)) }
    }

    /// The same operation, its outcome seen through `map`.
    pub(crate) fn then<P, Fut>(self, map: impl FnOnce(O) -> Fut + Send + 'a) -> DurableFuture<'a, P>
    where
        O: Send + 'a,
        Fut: Future<Output = P> + Send + 'a,
    {
        let inner = self.inner;
        DurableFuture {
            operation_id: self.operation_id,
            inner: Box::pin(async move {
                let outcome = inner.await;
                map(outcome).await
            }),
        }
    }

    /// For instance for [`crate::DurableContext::cancel_wait`].
    pub fn operation_id(&self) -> &str {
        &self.operation_id
    }
}

impl<O> fmt::Debug for DurableFuture<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableFuture").field("operation_id", &self.operation_id).finish_non_exhaustive()
    }
}

impl<O> Future for DurableFuture<'_, O> {
    type Output = O;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O> {
        self.inner.as_mut().poll(cx)
    }
}
