//! Handlers that are closures of this process.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use servo_adapter::{HandlerCall, HandlerFailure};

use crate::failure;

/// A handler in this process. Its future may be dropped: the execution was stopped, or it took too long.
pub type InProcessHandler =
    Arc<dyn Fn(HandlerCall) -> BoxFuture<'static, Result<String, HandlerFailure>> + Send + Sync>;

#[derive(Default)]
pub(crate) struct InProcess {
    handlers: RwLock<HashMap<String, InProcessHandler>>,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl InProcess {
    /// A later registration takes the place of an earlier one.
    pub(crate) fn register(&self, function: &str, handler: InProcessHandler) {
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).insert(function.to_owned(), handler);
    }

    pub(crate) async fn call(&self, call: Box<HandlerCall>) -> Result<String, HandlerFailure> {
        let handler = self.handlers.read().unwrap_or_else(PoisonError::into_inner).get(&call.function).cloned();
        let Some(handler) = handler else {
            let message =
                format!("no handler `{}` in this process; register it before the server starts", call.function);
            return Err(HandlerFailure::unreachable(failure::NOT_FOUND, message));
        };
        // Also the closure itself may panic, before there is a future.
        let work = AssertUnwindSafe(async move { handler(*call).await }).catch_unwind();
        work.await.unwrap_or_else(|_| Err(HandlerFailure::crashed(failure::EXIT, "the handler panicked")))
    }
}
