//! What every handler can reach: the runtime, who may ask, and the limits.

use std::sync::Arc;

use axum::Router;
use servo_runtime::{Runtime, Shutdown};
use tokio::sync::Semaphore;

use crate::auth::Auth;
use crate::config::ServerConfig;
use crate::cursor::CursorKey;
use crate::metrics::Metrics;
use crate::plan_source::PlanSources;
use crate::routes;

/// Everything the server is given.
#[derive(Debug)]
pub struct Parts {
    pub runtime: Runtime,
    pub auth: Auth,
    pub plan_sources: PlanSources,
    pub config: ServerConfig,
    /// Whether only this machine can reach the server.
    pub loopback: bool,
    /// Ends the server: no new connections, streams end, requests under way are answered.
    pub shutdown: Shutdown,
}

/// A handle: cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub runtime: Runtime,
    pub auth: Auth,
    pub plan_sources: PlanSources,
    pub config: ServerConfig,
    pub loopback: bool,
    pub shutdown: Shutdown,
    pub cursors: CursorKey,
    pub metrics: Metrics,
    /// Requests under way.
    pub requests: Arc<Semaphore>,
    /// Open event streams.
    pub streams: Arc<Semaphore>,
    /// Work on the whole store, one at a time.
    pub maintenance: Arc<Semaphore>,
}

impl App {
    pub async fn new(parts: Parts) -> Result<Self, servo_store::Error> {
        let secret = parts.runtime.engine().store().secret().await?;
        let inner = Inner {
            requests: Arc::new(Semaphore::new(parts.config.requests_max)),
            streams: Arc::new(Semaphore::new(parts.config.streams_max)),
            maintenance: Arc::new(Semaphore::new(1)),
            cursors: CursorKey::new(secret),
            metrics: Metrics::install(),
            runtime: parts.runtime,
            auth: parts.auth,
            plan_sources: parts.plan_sources,
            config: parts.config,
            loopback: parts.loopback,
            shutdown: parts.shutdown,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Every route with everything around it.
    pub fn router(&self) -> Router {
        routes::router(self)
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}
