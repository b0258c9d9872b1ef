//! Starting a server: store, bus, runtime, listener, ready — and stopping in the opposite order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use servo_adapter::Adapter;
use servo_adapter::mock::Mock;
use servo_adapter_lambda::LambdaHandlers;
use servo_bus_nats::{Login, NatsBus, TlsFiles};
use servo_cli::args::ServerArgs;
use servo_cli::{Failure, exit};
use servo_entrypoint::RestRuntime;
use servo_otlp::Otlp;
use servo_runtime::{Bus, Clock, Ids, InProcessBus, Runtime, Shutdown, SpanSink, SystemClock, Tasks, Types};
use servo_server::auth::Auth;
use servo_server::config::{BusAddress, BusConfig, BusLogin, Config, EnginesConfig};
use servo_server::{App, Parts, Tls, serve};
use servo_store::admin::Condition;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::background::Background;
use crate::code::{self, AllHandlers};
use crate::dev::printer::Held;
use crate::dev_key::DevKey;
use crate::functions::{Functions, Host};
use crate::ready::{Announcement, Ready};
use crate::signals::Signals;
use crate::stores::Opened;
use crate::{config, deadline, log, sabotage, stores, telemetry};

/// How long a start waits for readiness before it says where the server is.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// What a stop has in any case, also where the grace period is short: closing the store takes some syncs.
const STOP_MIN: Duration = Duration::from_secs(1);

/// How long a process may take to end that has stopped.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// How long a server may take to end whose disk has reported an error.
const BROKEN_WITHIN: Duration = Duration::from_millis(1_500);

/// How long a stop waits for a collector.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

pub(crate) async fn server(args: ServerArgs) -> Result<u8, Failure> {
    let config = config::load(Some(&args.config))?;
    log::install(&args.log, &config.log)?;
    if matches!(config.auth(), Auth::Development) {
        tracing::warn!(
            "nobody needs a key: whoever reaches {} from this machine is platform-admin, and so is the world through a proxy or \
             a tunnel that ends here; add [[auth.keys]] (name, tenant, roles, sha256) to the configuration",
            config.server.bind
        );
    }
    let announcement = if args.ready_json { Announcement::Json { ephemeral: false } } else { Announcement::Log };
    let start = Start { config, announcement, clock: Arc::new(SystemClock), people: None, dev: false };
    run(start, async |_| Ok(None)).await
}

/// What a server is started with.
pub(crate) struct Start {
    pub(crate) config: Config,
    pub(crate) announcement: Announcement,
    /// Of the runtime, and of a store in a file.
    pub(crate) clock: Arc<dyn Clock>,
    /// Somebody watches: they are told on stderr what a log would have, and what waits for the announcement goes out after it.
    pub(crate) people: Option<Held>,
    /// Whether this is `servo dev`.
    pub(crate) dev: bool,
}

/// A server that answers, before it is announced.
pub(crate) struct Begun<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) handlers: &'a Arc<LambdaHandlers>,
    pub(crate) serverless: &'a Arc<dyn RestRuntime>,
    pub(crate) tasks: &'a Tasks,
}

/// The whole life of a server. `begun` is called once everything answers, and may have a key to announce.
pub(crate) async fn run(
    start: Start,
    begun: impl AsyncFnOnce(Begun<'_>) -> Result<Option<DevKey>, Failure>,
) -> Result<u8, Failure> {
    let Start { config, announcement, clock, people, dev } = start;
    let watched = people.is_some();
    let mut signals = Signals::new(dev)?;
    let listener = bind(config.server.bind).await?;
    let tls = load_tls(&config)?;
    let Opened { store, hints, condition } = stores::open(&config.store, &config.runtime.limits, &clock).await?;
    let bus = bus(&config.bus).await?;
    let background = Background::start((crate::workers() / 2).max(1))?;
    let tasks = background.tasks();
    let ids = Ids::from_os();
    let telemetry = telemetry::start(&config.telemetry, &ids, &tasks)?;
    let address = listener.local_addr().map_err(|error| Failure::new(exit::ERROR, error.to_string()))?;
    let functions = Functions::new(&config, address, tls.is_some(), &clock)?;
    let mut runtime_config = config.runtime.clone();
    sabotage::weaken_runtime(&mut runtime_config);
    let parts = servo_runtime::Parts {
        store,
        clock,
        ids: Arc::new(ids),
        tasks: tasks.clone(),
        bus,
        adapters: adapters(&config.engines),
        handlers: Arc::new(AllHandlers { lambda: functions.handlers.clone(), starlark: functions.starlark.clone() }),
        types: Types::published(),
        spans: telemetry.clone().map(|spans| spans as Arc<dyn SpanSink>),
        config: runtime_config,
    };
    let runtime = Runtime::start(parts).await.map_err(|error| stores::refused("the store", error))?;
    if let Some(hints) = hints {
        tasks.spawn("hints", runtime.clone().follow_hints(hints.wrote));
        tasks.spawn("freed", runtime.clone().follow_freed(hints.freed));
    }
    let serverless = code::serverless(&config.serverless, &runtime, &functions.starlark);
    let sight = serverless.sight().clone();
    let serverless: Arc<dyn RestRuntime> = Arc::new(serverless);
    let handlers = functions.begin(&runtime, &tasks).await?;
    let shutdown = Shutdown::default();
    let app = App::new(Parts {
        runtime: runtime.clone(),
        serverless: serverless.clone(),
        sight,
        auth: config.auth(),
        plan_sources: config.plan_sources().map_err(|error| Failure::usage(error.to_string()))?,
        host: Arc::new(Host(handlers.clone())),
        loopback: address.ip().is_loopback(),
        dev,
        config: config.server.clone(),
        shutdown: shutdown.clone(),
    })
    .await
    .map_err(|error| stores::refused("the store", error))?;
    let connections = tasks.group();
    let serving = tasks.group();
    let encrypted = tls.is_some();
    serving.spawn("server", {
        let connections = connections.clone();
        async move { serve(listener, tls, app, &connections).await }
    });
    until_ready(&runtime).await;
    let key = begun(Begun { runtime: &runtime, handlers: &handlers, serverless: &serverless, tasks: &tasks }).await?;
    Ready { address, encrypted, config: &config, key }.announce(announcement);
    drop(people);

    let code = tokio::select! {
        code = signals.first() => {
            tell(watched, "Stopping: work in flight may finish. Ctrl-C again ends at once.");
            let grace = Duration::from_millis(config.runtime.shutdown_grace_ms);
            deadline::arm(grace.max(STOP_MIN), exit::ERROR);
            runtime.engine().begin_stop();
            code
        }
        () = stopped(condition) => {
            tell(watched, "Ending: the disk reported an error. Start it again: what was acknowledged is kept.");
            deadline::arm(BROKEN_WITHIN, exit::DISK);
            // Requests in hand are answered: the store refuses all of them.
            runtime.engine().begin_stop_within(BROKEN_WITHIN / 2);
            exit::DISK
        }
    };
    tokio::select! {
        () = stop(&shutdown, &serving, &runtime, &handlers, telemetry.as_deref()) => tell(watched, "Stopped."),
        _ = signals.first() => tell(watched, "Ended at once: work in flight is handed out again after the next start."),
    }
    // What is left is to end, which waits for threads that may hang.
    deadline::arm(LEAVE_WITHIN, code);
    Ok(code)
}

/// Ready when the store takes no more writes until it is opened again.
async fn stopped(condition: Option<watch::Receiver<Condition>>) {
    if let Some(mut condition) = condition
        && condition.wait_for(|condition| matches!(condition, Condition::Stopped { .. })).await.is_ok()
    {
        return;
    }
    // Nobody will say so.
    std::future::pending().await
}

fn tell(watched: bool, what: &str) {
    if watched {
        // `servo dev` has a log before it has a server.
        log::say(what);
    } else {
        tracing::info!("{what}");
    }
}

/// No new work; handlers may answer what they have, for which they need the server; then no new requests, then the store.
async fn stop(
    shutdown: &Shutdown,
    serving: &Tasks,
    runtime: &Runtime,
    handlers: &LambdaHandlers,
    telemetry: Option<&Otlp>,
) {
    let engine = runtime.engine();
    tokio::select! {
        () = handlers.stop() => {}
        () = engine.clock().sleep(engine.work_left()) => tracing::warn!("handlers did not end in time"),
    }
    shutdown.trigger();
    serving.idle().await;
    runtime.stop().await;
    // Last, because all of this has spans.
    if let Some(telemetry) = telemetry {
        telemetry.stop(FLUSH_WITHIN.min(engine.stop_left())).await;
    }
}

/// The authority is taken by a loop, a moment after the start. Where that takes longer, the server is announced all the
/// same: it answers, and `/readyz` says what it waits for.
async fn until_ready(runtime: &Runtime) {
    let clock = runtime.engine().clock();
    let deadline = clock.now().plus(READY_WITHIN);
    while clock.now() < deadline {
        if runtime.snapshot().await.is_ok_and(|snapshot| snapshot.readiness.ready) {
            return;
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    tracing::warn!("not ready yet; /readyz says why");
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let failure = Failure::new(exit::ERROR, format!("{address} cannot be listened on: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => failure.hint("something else listens there; --port 0 takes any free port"),
            _ => failure.hint("choose another address in [server] bind"),
        }
    })
}

fn load_tls(config: &Config) -> Result<Option<Tls>, Failure> {
    let Some(tls) = &config.server.tls else { return Ok(None) };
    let loaded = Tls::load(&tls.cert, &tls.key);
    loaded.map(Some).map_err(|error| Failure::usage(format!("server.tls: {error}")).hint("both are PEM files"))
}

async fn bus(config: &BusConfig) -> Result<Arc<dyn Bus>, Failure> {
    let address = config.address().map_err(|error| Failure::usage(error.to_string()))?;
    let Some(BusAddress { url, login, encrypts, is_local }) = address else {
        return Ok(Arc::new(InProcessBus::default()));
    };
    if login != BusLogin::Nobody && !encrypts && !is_local {
        tracing::warn!("the bus may be sent its password, or a token, in the clear: say tls:// in bus.nats_url");
    }
    let mut bus = servo_bus_nats::Config::new(&url);
    bus.login = match login {
        BusLogin::Nobody => Login::Nobody,
        BusLogin::Password { user, password } => Login::Password { user, password },
        BusLogin::PasswordFile { user, file } => Login::PasswordFile { user, file },
        BusLogin::Token(token) => Login::Token(token),
        BusLogin::TokenFile(file) => Login::TokenFile(file),
        BusLogin::NkeyFile(file) => Login::NkeyFile(file),
        BusLogin::CredentialsFile(file) => Login::CredentialsFile(file),
    };
    let own = config.cert_file.clone().zip(config.key_file.clone());
    bus.tls = TlsFiles { is_required: encrypts, ca: config.ca_file.clone(), own };
    let bus = NatsBus::connect(bus).await;
    let bus = bus.map_err(|error| Failure::usage(format!("bus: {error}")).hint("such as nats://host:4222"))?;
    Ok(Arc::new(bus))
}

fn adapters(config: &EnginesConfig) -> Vec<Arc<dyn Adapter>> {
    let mut adapters: Vec<Arc<dyn Adapter>> = Vec::new();
    if config.mock {
        adapters.push(Arc::new(Mock));
    }
    adapters
}
