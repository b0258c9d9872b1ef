//! `LambdaHandlers`: chooses the way to a handler by the function's `reach`, and owns the listeners and processes that the
//! ways need.

use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::header::HeaderValue;
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};
use servo_model::function::Reach;
use servo_model::{RunId, TenantId};
use servo_sched::{Bounds, Counter};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::in_process::{InProcess, InProcessHandler};
use crate::port::{PortId, WorkerKind, WorkerView};
use crate::pull::Hub;
use crate::push::Push;
use crate::settings::{Error, Parts};
use crate::supervise::Supervised;
use crate::supervise::command::WorkerCommand;
use crate::supervise::spawner::Spawner;
use crate::{failure, listener, tasks};

pub struct LambdaHandlers {
    parts: Arc<Parts>,
    push: Push,
    in_process: InProcess,
    hubs: Mutex<HashMap<(TenantId, String), Arc<Hub>>>,
    bodies: Counter<TenantId>,
    supervised: Mutex<Vec<Arc<Supervised>>>,
    spawner: Arc<Spawner>,
    /// One listener is opened at a time, so that asking twice gives the same one.
    opening: tokio::sync::Mutex<()>,
    /// Ends processes first, because they may still answer; then listeners.
    stop: CancellationToken,
    stop_listening: CancellationToken,
    processes: TaskTracker,
    connections: TaskTracker,
}

impl fmt::Debug for LambdaHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LambdaHandlers").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl LambdaHandlers {
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let push = Push::new(parts.settings.push_allow.clone()).map_err(Error::Client)?;
        Ok(Self {
            bodies: Counter::new(Bounds::shared(parts.settings.bodies_bytes_max)),
            parts: Arc::new(parts),
            push,
            in_process: InProcess::default(),
            hubs: Mutex::default(),
            supervised: Mutex::default(),
            spawner: Arc::default(),
            opening: tokio::sync::Mutex::new(()),
            stop: CancellationToken::new(),
            stop_listening: CancellationToken::new(),
            processes: TaskTracker::new(),
            connections: TaskTracker::new(),
        })
    }

    /// Opens the Runtime API for outside workers of a pull function, whatever version they get. Asking again gives the same
    /// address.
    pub async fn open_pull(&self, tenant: &TenantId, function: &str) -> Result<SocketAddr, Error> {
        self.open_for(tenant, function, None).await
    }

    /// The same for workers of one version: they get its calls only.
    pub async fn open_version(&self, tenant: &TenantId, function: &str, version: &str) -> Result<SocketAddr, Error> {
        self.open_for(tenant, function, Some(version)).await
    }

    async fn open_for(&self, tenant: &TenantId, function: &str, version: Option<&str>) -> Result<SocketAddr, Error> {
        let _one = self.opening.lock().await;
        let hub = self.hub(tenant, function)?;
        if let Some(address) = hub.open_address(version) {
            return Ok(address);
        }
        let settings = &self.parts.settings;
        if hub.ports() >= settings.addresses_max {
            let max = settings.addresses_max;
            return Err(Error::Full { what: "addresses of the function's versions", max, setting: "addresses_max" });
        }
        let named = version.map_or_else(|| function.to_owned(), |version| format!("{function}:{version}"));
        let configured = settings.addresses.iter().find(|(name, _)| *name == named);
        let wanted = configured.map_or(SocketAddr::new(settings.listen_ip, 0), |(_, address)| *address);
        let at = (WorkerKind::Pull, version.map(str::to_owned));
        let (_, address) = self.listen(&hub, at, wanted, self.stop_listening.clone()).await?;
        Ok(address)
    }

    /// What a run waits for here because no worker has taken its call yet: a function and its version.
    pub fn awaited_worker(&self, tenant: &TenantId, run_id: &RunId) -> Option<String> {
        let hubs = self.hubs();
        let own = hubs.iter().filter(|hub| hub.tenant == *tenant);
        own.filter_map(|hub| Some(format!("{}:{}", hub.function, hub.awaited_version(run_id)?))).next()
    }

    /// Workers of a function that ask here for a call, or have one, right now.
    pub fn live_workers(&self, tenant: &TenantId, function: &str) -> usize {
        let key = (tenant.clone(), function.to_owned());
        let hub = self.hubs.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let views = hub.map(|hub| hub.views()).unwrap_or_default();
        views.iter().map(|view| view.pollers + view.in_flight).sum()
    }

    /// A handler for functions with `reach` in-process; a later one takes the place of an earlier one.
    pub fn register_in_process(&self, function: &str, handler: InProcessHandler) {
        self.in_process.register(function, handler);
    }

    /// Keeps one process running as worker of a pull function; asking again adds another. The address is private to it.
    pub async fn supervise(
        &self,
        tenant: &TenantId,
        function: &str,
        command: WorkerCommand,
    ) -> Result<SocketAddr, Error> {
        command.check().await.map_err(|source| Error::Program {
            function: function.to_owned(),
            path: command.program.display().to_string(),
            source,
        })?;
        let _one = self.opening.lock().await;
        let max = self.parts.settings.processes_max;
        if self.processes.len() >= max {
            return Err(Error::Full { what: "supervised workers", max, setting: "processes_max" });
        }
        let hub = self.hub(tenant, function)?;
        let serving = self.stop_listening.child_token();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // A program that we run is what its function's newest version is; older runs are its business, too.
        let at = self.listen(&hub, (WorkerKind::Supervised, None), loopback, serving.clone()).await?;
        let worker =
            Supervised::new(hub, at, command, (self.parts.clone(), self.spawner.clone()), self.stop.child_token());
        let worker = Arc::new(worker);
        self.supervised.lock().unwrap_or_else(PoisonError::into_inner).push(worker.clone());
        tasks::spawn(&self.processes, async move {
            worker.run().await;
            serving.cancel();
            worker.hub.remove(worker.port);
        });
        Ok(at.1)
    }

    /// Ends the supervised workers of a function, after what they have in hand. Ready at once; `workers` shows when they
    /// are gone.
    pub fn dismiss(&self, tenant: &TenantId, function: &str) {
        let mut supervised = self.supervised.lock().unwrap_or_else(PoisonError::into_inner);
        supervised.retain(|worker| {
            let meant = worker.hub.tenant == *tenant && worker.hub.function == function;
            if meant {
                worker.stop.cancel();
            }
            !meant
        });
    }

    /// Replaces supervised workers whose program's file changed since they were started; says how many.
    pub async fn replace_changed(&self) -> usize {
        let supervised = self.supervised.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut replaced = 0;
        for worker in supervised {
            replaced += usize::from(worker.replace_if_changed().await);
        }
        replaced
    }

    /// By tenant, function and age.
    pub fn workers(&self) -> Vec<WorkerView> {
        let mut views: Vec<WorkerView> = self.hubs().into_iter().flat_map(|hub| hub.views()).collect();
        views.sort_by(|a, b| (&a.tenant, &a.function).cmp(&(&b.tenant, &b.function)));
        views
    }

    /// Takes no more calls, lets supervised workers answer what they have and ends them, closes all listeners.
    pub async fn stop(&self) {
        self.stop.cancel();
        // Somebody may be opening a listener at this moment; after them nobody can.
        drop(self.opening.lock().await);
        for hub in self.hubs() {
            hub.close();
        }
        self.processes.close();
        self.processes.wait().await;
        self.stop_listening.cancel();
        for hub in self.hubs() {
            hub.abort();
        }
        self.connections.close();
        self.connections.wait().await;
    }

    fn hubs(&self) -> Vec<Arc<Hub>> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// A function's calls can wait before any worker has an address: after a restart they come in any order.
    fn hub(&self, tenant: &TenantId, function: &str) -> Result<Arc<Hub>, Error> {
        let mut hubs = self.hubs.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stop.is_cancelled() {
            return Err(Error::Stopping);
        }
        let key = (tenant.clone(), function.to_owned());
        if let Some(hub) = hubs.get(&key) {
            return Ok(hub.clone());
        }
        let max = self.parts.settings.functions_max;
        if hubs.len() >= max {
            return Err(Error::Full { what: "functions with workers", max, setting: "functions_max" });
        }
        let hub = Arc::new(Hub::new(tenant.clone(), function.to_owned(), &self.parts, self.bodies.clone()));
        hubs.insert(key, hub.clone());
        Ok(hub)
    }

    async fn pull(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        match self.hub(&call.tenant, &call.function) {
            Ok(hub) => hub.call(call).await,
            Err(error @ Error::Full { .. }) => Err(HandlerFailure::unreached(failure::TOO_MANY, error.to_string())),
            Err(error) => Err(HandlerFailure::unreached(failure::EXIT, error.to_string())),
        }
    }

    async fn listen(
        &self,
        hub: &Arc<Hub>,
        (kind, version): (WorkerKind, Option<String>),
        wanted: SocketAddr,
        stop: CancellationToken,
    ) -> Result<(PortId, SocketAddr), Error> {
        let failed = |source| Error::Listen { function: hub.function.clone(), address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let port = hub.open(kind, version, address);
        let task = listener::serve(listener, hub.clone(), port, stop, self.connections.clone());
        tasks::spawn(&self.connections, task);
        Ok((port, address))
    }
}

impl Drop for LambdaHandlers {
    fn drop(&mut self) {
        self.stop.cancel();
        self.stop_listening.cancel();
        // Nothing in hand, nothing to wait for: processes are ended at once.
        for hub in self.hubs() {
            hub.close();
            hub.abort();
        }
    }
}

#[async_trait]
impl Handlers for LambdaHandlers {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        // Left out, it would let the handler act for everybody.
        let in_header = matches!(call.spec.reach, Reach::Pull | Reach::Push { .. });
        if in_header && call.tenant_id.as_ref().is_some_and(|id| HeaderValue::from_str(id).is_err()) {
            let message = "the tenant id cannot stand in a header; start the execution with another";
            return Err(HandlerFailure::unreachable(failure::INVALID_PARAMETER, message));
        }
        let timeout = call.timeout;
        let reached = match call.spec.reach.clone() {
            // Its time begins when a worker takes the call.
            Reach::Pull => return self.pull(call).await,
            Reach::Push { url } => tokio::time::timeout(timeout, self.push.call(&url, call)).await,
            Reach::InProcess => tokio::time::timeout(timeout, self.in_process.call(call)).await,
            Reach::Code(code) => {
                let message = format!("nothing here runs {}", code.language);
                return Err(HandlerFailure::unreachable(failure::NOT_FOUND, message));
            }
        };
        reached.unwrap_or_else(|_| Err(failure::timed_out(timeout))).map(Reply::from)
    }

    fn keeps_time(&self, reach: &Reach) -> bool {
        matches!(reach, Reach::Pull)
    }
}
