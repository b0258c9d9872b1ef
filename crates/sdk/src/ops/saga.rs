//! Sagas: what was done is undone, newest first, when a later part fails for good.

use std::fmt;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::OperationType;
use servo_replay::SubType;

use super::child::{Shape, run_context};
use crate::config::{ContextConfig, Nesting, StepConfig};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::{BoxError, DurableContext, DurableError, StepContext, panic};

/// Begins the step that undoes. It is called when its turn has come, so that ids follow the order of undoing.
type Undo<'a> = Box<dyn FnOnce(&DurableContext) -> DurableFuture<'a, Result<(), DurableError>> + Send + 'a>;

/// A name for messages, and how to undo.
type Undos<'a> = Arc<Mutex<Vec<(String, Undo<'a>)>>>;

/// The body of [`DurableContext::saga`] does its work through this.
///
/// Its steps borrow it until they are awaited, so they run one after the other: the order of undoing is the same on every
/// replay. Branches of a map or parallel begin sagas of their own.
pub struct Saga<'a> {
    ctx: DurableContext,
    undos: Undos<'a>,
}

impl fmt::Debug for Saga<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saga").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}

impl<'a> Saga<'a> {
    /// For what needs no undoing: waits, callbacks, steps that only read.
    pub fn context(&self) -> &DurableContext {
        &self.ctx
    }

    /// A step, as [`DurableContext::step`]. Tell what undoes it with [`SagaStep::undo`], or just await it.
    pub fn step<'s, T, F, R, M>(&'s mut self, func: F, config: impl Into<Option<StepConfig>>) -> SagaStep<'s, 'a, T>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        F: FnOnce(StepContext) -> R + Send + 'a,
        R: Outcome<M, T> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let name = config.name.clone().unwrap_or_else(|| "step".to_owned());
        SagaStep { name, step: self.ctx.step(func, Some(config)), saga: self }
    }

    /// What undoes something other than a step of the saga, such as an invoked function. Call it once that has succeeded.
    /// `name` is that of the step that undoes, unless the configuration has another.
    pub fn on_failure<G, Q, N>(&mut self, name: &str, undo: G, config: impl Into<Option<StepConfig>>)
    where
        G: FnOnce(StepContext) -> Q + Send + 'a,
        Q: Outcome<N, ()> + 'a,
        Q::Future: Send + 'a,
        N: 'a,
    {
        let mut config = config.into().unwrap_or_default();
        let name = config.name.get_or_insert_with(|| name.to_owned()).clone();
        let undo: Undo<'a> = Box::new(move |ctx| ctx.step(undo, config));
        self.undos.lock().unwrap_or_else(PoisonError::into_inner).push((name, undo));
    }
}

/// A step of a saga that has not run yet.
#[must_use = "a step does nothing until it is awaited"]
pub struct SagaStep<'s, 'a, T> {
    name: String,
    step: DurableFuture<'a, Result<T, DurableError>>,
    saga: &'s mut Saga<'a>,
}

impl<T> fmt::Debug for SagaStep<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaStep").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'s, 'a: 's, T> SagaStep<'s, 'a, T>
where
    T: Clone + Send + 'a,
{
    /// Runs the step. If it succeeds and the saga fails later on, `undo` runs as a step with its result. The undoing step is
    /// named after this one, such as `undo charge`, unless its configuration has a name.
    pub fn undo<G, Q, N>(self, undo: G, config: impl Into<Option<StepConfig>>) -> BoxFuture<'s, Result<T, DurableError>>
    where
        G: FnOnce(StepContext, T) -> Q + Send + 'a,
        Q: Outcome<N, ()> + 'a,
        Q::Future: Send + 'a,
        N: 'a,
    {
        let config = config.into();
        let Self { name, step, saga } = self;
        Box::pin(async move {
            let value = step.await?;
            let done = value.clone();
            saga.on_failure(&format!("undo {name}"), move |step| undo(step, done), config);
            Ok(value)
        })
    }
}

/// Without anything that undoes it.
impl<'a, T> IntoFuture for SagaStep<'_, 'a, T> {
    type Output = Result<T, DurableError>;
    type IntoFuture = DurableFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.step
    }
}

impl DurableContext {
    /// Runs `body` in a context of its own. If it fails, or panics, what its steps have done is undone, newest first, and the
    /// saga fails with the body's error.
    ///
    /// What undoes is a step: it is tried again by its own rule, and its outcome is recorded, however often the program dies. If
    /// one fails for good, the others run all the same, and the saga fails with the type `SagaUndoError`, which names what is
    /// not undone. A step that itself failed is not undone: let it leave nothing when it fails, or register its undoing first
    /// with [`Saga::on_failure`]. An execution that is stopped or out of time undoes nothing.
    ///
    /// What undoes may borrow what the handler has, if `body` is written in the call as here. It may not borrow what `body` has:
    /// clone that, or take the step's result, which it is given.
    ///
    /// ```
    /// use servo_sdk::{ContextConfig, DurableContext, DurableError, Duration, StepConfig};
    ///
    /// async fn trip(guest: String, ctx: DurableContext) -> Result<String, DurableError> {
    ///     let booked = ctx.saga(async |mut saga| {
    ///         let room: String = saga
    ///             .step(|_| Ok("room 7".to_owned()), StepConfig::named("room"))
    ///             // The undoing step's own context, and what the step returned. Recorded as `undo room`.
    ///             .undo(|_, room| { println!("cancel {room} of {guest}"); Ok(()) }, None)
    ///             .await?;
    ///         saga.context().wait(Duration::from_hours(1), Some("seats are offered")).await?;
    ///         let seat: String = saga.step(|_| Err("sold out".into()), StepConfig::named("seat").no_retry()).await?;
    ///         Ok(format!("{room}, {seat}"))
    ///     }, ContextConfig::named("trip"));
    ///     match booked.await {
    ///         Err(DurableError::UserCode { message, .. }) => Ok(format!("not booked: {message}")),
    ///         outcome => outcome,
    ///     }
    /// }
    /// ```
    pub fn saga<'a, T, F, R, M>(
        &self,
        body: F,
        config: impl Into<Option<ContextConfig>>,
    ) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        F: FnOnce(Saga<'a>) -> R + Send + 'a,
        R: Outcome<M, T> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Context, SubType::RunInChildContext), config.name.as_deref());
        DurableFuture::new(op, |op| async move {
            let shape = Shape {
                replay_children: config.replay_children,
                ..Shape::new(config.serdes.as_ref(), Nesting::Nested)
            };
            run_context(&op, shape, |ctx, _| async move { run(ctx, body).await }).await
        })
    }
}

async fn run<'a, T, F, R, M>(ctx: DurableContext, body: F) -> Result<T, BoxError>
where
    F: FnOnce(Saga<'a>) -> R,
    R: Outcome<M, T>,
{
    let undos = Undos::default();
    let saga = Saga { ctx: ctx.clone(), undos: undos.clone() };
    let error = match panic::guard(async move { body(saga).into_future().await }).await {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut left = Vec::new();
    loop {
        let newest = undos.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some((name, undo)) = newest else { break };
        if let Err(error) = undo(&ctx).await {
            left.push(format!("{name}: {}", error.message()));
        }
    }
    if left.is_empty() {
        return Err(error.into());
    }
    let message = format!("{}; not undone: {}", error.message(), left.join("; "));
    Err(DurableError::user("SagaUndoError", message).into())
}
