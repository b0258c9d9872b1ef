//! What can be run as a durable function, and what the bodies of its operations may look like.

use std::future::{Ready, ready};

use crate::{BoxError, DurableContext, DurableError};

/// A durable function: from an event and a context to a result. Async functions of that shape are handlers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a durable handler",
    label = "expected `async fn(event: E, ctx: DurableContext) -> Result<R, DurableError>`",
    note = "the future must be `Send`: hold no `Rc`, `RefCell` guard or raw pointer across an await"
)]
pub trait Handler<E, R>: Send + std::marker::Sync {
    fn call(&self, event: E, ctx: DurableContext) -> impl Future<Output = Result<R, DurableError>> + Send;
}

impl<F, Fut, E, R> Handler<E, R> for F
where
    F: Fn(E, DurableContext) -> Fut + Send + std::marker::Sync,
    Fut: Future<Output = Result<R, DurableError>> + Send,
{
    fn call(&self, event: E, ctx: DurableContext) -> impl Future<Output = Result<R, DurableError>> + Send {
        self(event, ctx)
    }
}

/// The body returned its result.
#[derive(Debug)]
pub enum Sync {}
/// The body returned a future of its result.
#[derive(Debug)]
pub enum Async {}

/// What the closure of an operation returns: a result, or a future of one. The marker keeps the two apart for the
/// compiler; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "the closure of a durable operation cannot return `{Self}`",
    label = "expected `Result<T, Box<dyn Error + Send + Sync>>` or a future of it",
    note = "end the closure with `Ok(value)`, and turn errors of other types into it with `?`"
)]
pub trait Outcome<M, T> {
    type Future: Future<Output = Result<T, BoxError>>;
    fn into_future(self) -> Self::Future;
}

impl<T> Outcome<Sync, T> for Result<T, BoxError> {
    type Future = Ready<Self>;

    fn into_future(self) -> Self::Future {
        ready(self)
    }
}

impl<T, Fut: Future<Output = Result<T, BoxError>>> Outcome<Async, T> for Fut {
    type Future = Fut;

    fn into_future(self) -> Self::Future {
        self
    }
}
