//! Handlers of this process, as the engine calls them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_adapter::{FailureKind, HandlerCall, HandlerFailure, Handlers, Reply};
use servo_runtime::executions::Executions;
use servo_sdk::{
    DurableExecutionInvocationInput, DurableExecutionInvocationOutput, DurableServiceClient, Handler, InvocationError,
    Options, handle,
};
use tokio::sync::SetOnce;

use crate::client::EngineClient;

type Invoked = BoxFuture<'static, Result<DurableExecutionInvocationOutput, InvocationError>>;
type Erased =
    Arc<dyn Fn(DurableExecutionInvocationInput, Arc<dyn DurableServiceClient>, Options) -> Invoked + Send + Sync>;

/// Durable functions by name, whatever their types.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<String, Erased>);

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Functions {
    /// False if there was one of this name, which stays.
    #[must_use]
    pub fn add<E, R, H>(&mut self, name: &str, handler: H) -> bool
    where
        E: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        H: Handler<E, R> + 'static,
    {
        if self.0.contains_key(name) {
            return false;
        }
        let handler = Arc::new(handler);
        let erased: Erased = Arc::new(move |input, client, options| {
            let handler = handler.clone();
            Box::pin(async move {
                let call = |event, ctx| handler.call(event, ctx);
                handle(call, input, client, options).await
            })
        });
        self.0.insert(name.to_owned(), erased);
        true
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Makes the client that a handler's invocation talks to, so that something can stand in between.
pub type Connect = Arc<dyn Fn(EngineClient) -> Arc<dyn DurableServiceClient> + Send + Sync>;

/// What the runtime is given as its handlers. Invocations that come before [`Host::connect`] wait for it: a store may hold
/// work from before the start.
pub struct Host {
    functions: Functions,
    options: Options,
    connect: Connect,
    executions: SetOnce<Executions>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl Host {
    pub fn new(functions: Functions, options: Options) -> Self {
        let connect: Connect = Arc::new(|client| Arc::new(client));
        Self { functions, options, connect, executions: SetOnce::new() }
    }

    /// Puts something between the handlers and the engine, such as faults in tests.
    #[must_use]
    pub fn through(mut self, connect: Connect) -> Self {
        self.connect = connect;
        self
    }

    /// The engine that was started with this host. Once; later calls change nothing.
    pub fn connect(&self, executions: Executions) {
        if self.executions.set(executions).is_err() {
            tracing::debug!("the host has its engine already");
        }
    }
}

#[async_trait]
impl Handlers for Host {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        let Some(function) = self.functions.0.get(&call.function) else {
            // Not a lost cause: the program may have been started without a function that it had before.
            let message = format!(
                "this program has no function `{}`; register it before the start. It has: {}",
                call.function,
                self.functions.names().collect::<Vec<_>>().join(", ")
            );
            return Err(HandlerFailure::crashed("ResourceNotFoundException", message));
        };
        let input: DurableExecutionInvocationInput = serde_json::from_str(&call.payload).map_err(|error| {
            HandlerFailure::crashed("Runtime.InvalidEnvelope", format!("the invocation cannot be read: {error}"))
        })?;
        let executions = self.executions.wait().await.clone();
        let client = (self.connect)(EngineClient::new(executions, call.tenant));
        match function(input, client, self.options.clone()).await {
            Ok(answer) => serde_json::to_string(&answer).map(Reply::from).map_err(|error| {
                HandlerFailure::crashed("Runtime.InvalidAnswer", format!("the answer cannot be written: {error}"))
            }),
            Err(InvocationError(error)) => Err(HandlerFailure::new(FailureKind::Crashed, error.to_error_object())),
        }
    }
}
