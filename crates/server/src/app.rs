//! What every handler can reach: the runtime, who may ask, and the limits.

use std::sync::{Arc, OnceLock};

use axum::Router;
use servo_entrypoint::RestRuntime;
use servo_ingress::{Bounds, Connections, Listener, Pages};
use servo_runtime::serverless::Sight;
use servo_runtime::{Runtime, Shutdown};
use tokio::sync::{Mutex, Semaphore};

use crate::audit::{Acts, Recorder};
use crate::auth::Auth;
use crate::config::ServerConfig;
use crate::cursor::CursorKey;
use crate::host::FunctionHost;
use crate::identity::StoredKeys;
use crate::identity::keys::KeyUses;
use crate::link::Ending;
use crate::metrics::Metrics;
use crate::plan_source::PlanSources;
use crate::rooms::Rooms;
use crate::routes;
use crate::series::Samples;

/// Connections beyond those that have a place, on which probes are answered and others told to come back.
const BEYOND_MAX: usize = 64;

/// Everything the server is given.
pub struct Parts {
    pub runtime: Runtime,
    /// Entrypoints and their invocations.
    pub serverless: Arc<dyn RestRuntime>,
    /// What there is for a caller, whichever API asks.
    pub sight: Sight,
    pub auth: Auth,
    pub plan_sources: PlanSources,
    pub host: Arc<dyn FunctionHost>,
    pub config: ServerConfig,
    /// Whether only this machine can reach the server.
    pub loopback: bool,
    /// Whether this is `servo dev`, whose own key is taken on loopback and nowhere else.
    pub dev: bool,
    /// Ends the server: no new connections, streams end, requests under way are answered.
    pub shutdown: Shutdown,
}

/// A handle: cheap to clone, as every request and every layer on its way does it.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

/// What a handler can reach.
pub struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) serverless: Arc<dyn RestRuntime>,
    pub(crate) sight: Sight,
    pub(crate) auth: Auth,
    /// Keys of the store.
    pub(crate) keys: StoredKeys,
    /// Uses of keys, until somebody writes them down.
    pub(crate) key_uses: Arc<Mutex<Option<KeyUses>>>,
    pub(crate) recorder: Recorder,
    /// What is being changed, with or without its caller.
    pub(crate) acts: Acts,
    pub(crate) plan_sources: PlanSources,
    pub(crate) host: Arc<dyn FunctionHost>,
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) loopback: bool,
    pub(crate) shutdown: Shutdown,
    /// Whether connections are, once they are served.
    encrypted: OnceLock<bool>,
    pub(crate) cursors: CursorKey,
    pub(crate) metrics: Metrics,
    pub(crate) samples: Samples,
    /// What tenants have under way.
    pub(crate) rooms: Rooms,
    /// Open connections, by what ends them.
    pub(crate) connections: Connections<Arc<Ending>>,
    /// What this server is to whoever asks; the address differs from connection to connection.
    pub(crate) listener: Listener,
    /// Work on the whole store, one at a time.
    pub(crate) maintenance: Arc<Semaphore>,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("config", &self.config).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("config", &self.config).finish_non_exhaustive()
    }
}

impl App {
    pub async fn new(parts: Parts) -> Result<Self, servo_store::Error> {
        let store = parts.runtime.engine().store();
        let secret = store.secret().await?;
        let (keys, key_uses) = StoredKeys::new(store.clone()).await?;
        let keys = if parts.dev && parts.loopback { keys.with_dev_key() } else { keys };
        let recorder = Recorder::new(store.clone());
        let places = parts.config.connections_max;
        let listener = Listener {
            address: None,
            loopback: parts.loopback,
            keyless: matches!(parts.auth, Auth::Development),
            hosts: parts.config.authorities(),
            pages: Pages::Own,
        };
        let hang_up_drops = parts.runtime.engine().config().is_sabotaged("hang-up-drops");
        Ok(Self(Arc::new(Shared {
            rooms: Rooms::new(&parts.config, parts.runtime.engine().config().is_sabotaged("one-room")),
            connections: Connections::new(Bounds { places, fresh: places.div_ceil(2), beyond: BEYOND_MAX }),
            listener,
            maintenance: Arc::new(Semaphore::new(1)),
            cursors: CursorKey::new(secret),
            metrics: Metrics::install(),
            samples: Samples::default(),
            runtime: parts.runtime,
            serverless: parts.serverless,
            sight: parts.sight,
            auth: parts.auth,
            keys,
            key_uses: Arc::new(Mutex::new(Some(key_uses))),
            recorder,
            acts: Acts::new(parts.config.requests_max, hang_up_drops),
            plan_sources: parts.plan_sources,
            host: parts.host,
            config: Arc::new(parts.config),
            loopback: parts.loopback,
            shutdown: parts.shutdown,
            encrypted: OnceLock::new(),
        })))
    }

    /// A server with a certificate speaks TLS only, one without speaks none.
    pub(crate) fn serves(&self, encrypted: bool) {
        let _ = self.encrypted.set(encrypted);
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.encrypted.get().copied().unwrap_or_default()
    }

    /// Every route with everything around it.
    pub fn router(&self) -> Router {
        routes::router(self)
    }
}
