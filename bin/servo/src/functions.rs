//! Functions on this node: how their handlers are reached, where their workers ask, and what they write.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use servo_adapter::{CapturedLine, LineSink, WorkerWatch};
use servo_adapter_lambda::{LambdaHandlers, Settings, WorkerCommand};
use servo_adapter_starlark::Starlark;
use servo_cli::{Failure, exit};
use servo_model::contract::RuntimeEvent;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, RunId, TenantId};
use servo_runtime::{Clock, Runtime, SystemClock, Tasks};
use servo_server::auth::Auth;
use servo_server::config::{Config, FunctionsConfig};
use servo_server::host::FunctionHost;
use servo_store::lines::{LineSource, LogLine};
use servo_store::{Scope, Store};
use tokio::sync::mpsc;

/// Lines that wait to be stored; further ones are dropped, because a talkative handler must not stop the server.
const LINES_WAITING_MAX: usize = 10_000;
/// Facts about workers that wait to be recorded.
const NEWS_WAITING_MAX: usize = 1_000;
/// Lines stored together.
const LINES_TOGETHER: usize = 500;

/// What a worker needs of the environment that the server has.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "NODE_PATH"];

pub(crate) struct Functions {
    pub(crate) handlers: Arc<LambdaHandlers>,
    pub(crate) starlark: Arc<Starlark>,
    lines: mpsc::Receiver<CapturedLine>,
    /// About workers.
    news: mpsc::Receiver<RuntimeEvent>,
}

/// Hands lines over without waiting.
struct Sink(mpsc::Sender<CapturedLine>);

impl LineSink for Sink {
    fn line(&self, line: CapturedLine) {
        if self.0.try_send(line).is_err() {
            tracing::debug!("a line of a worker was dropped: more are written than can be stored");
        }
    }
}

/// The same for what is seen of workers.
struct News(mpsc::Sender<RuntimeEvent>);

impl WorkerWatch for News {
    fn note(&self, event: RuntimeEvent) {
        if self.0.try_send(event).is_err() {
            tracing::debug!("news of a worker were dropped: more come than can be recorded");
        }
    }
}

impl Functions {
    pub(crate) fn new(
        config: &Config,
        address: SocketAddr,
        encrypted: bool,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
        let (sender_of_news, news) = mpsc::channel(NEWS_WAITING_MAX);
        let sink: Arc<dyn LineSink> = Arc::new(Sink(sender));
        let starlark = crate::code::starlark(&config.serverless, sink.clone(), clock)?;
        let FunctionsConfig { listen_ip, addresses, .. } = &config.functions;
        // With keys there are callers elsewhere, who come through a proxy.
        let only_this_machine = address.ip().is_loopback() && matches!(config.auth(), Auth::Development);
        let settings = Settings {
            listen_ip: *listen_ip,
            hosts: config.server.authorities(),
            addresses: addresses.iter().map(|(name, address)| (name.clone(), *address)).collect(),
            push_allow: config.functions.push_allowed(only_this_machine),
            ..Settings::default()
        };
        let environment = PASSED_ON.iter().filter_map(|name| {
            let value = std::env::var_os(name)?.into_string().ok()?;
            Some(((*name).to_owned(), value))
        });
        let scheme = if encrypted { "https" } else { "http" };
        let handlers = LambdaHandlers::new(servo_adapter_lambda::Parts {
            // Deadlines are told to programs that read the real clock.
            now: Arc::new(|| SystemClock.now()),
            lines: sink.clone(),
            watch: Arc::new(News(sender_of_news)),
            api_url: format!("{scheme}://{}", reachable(address)),
            place: config.runtime.place.clone(),
            environment: environment.collect(),
            settings,
        });
        let handlers = handlers.map_err(|error| Failure::new(exit::ERROR, error.to_string()))?;
        Ok(Self { handlers: Arc::new(handlers), starlark, lines, news })
    }

    /// Stores lines from now on, and opens the addresses of functions whose workers ask for work.
    pub(crate) async fn begin(self, runtime: &Runtime, tasks: &Tasks) -> Result<Arc<LambdaHandlers>, Failure> {
        let store = runtime.engine().store().clone();
        tasks.spawn("lines", keep_lines(self.lines, store.clone()));
        tasks.spawn("news", record_news(self.news, runtime.clone()));
        let host = Host(self.handlers.clone());
        let mut after = None;
        loop {
            let page = store.list_functions(&Scope::System, after, 100).await;
            let page = page.map_err(|error| crate::stores::refused("the store", error))?;
            let Some(last) = page.last() else { break };
            after = Some((last.tenant.clone(), last.name.clone()));
            for function in &page {
                if let Ok(spec) = serde_json::from_str::<FunctionSpec>(&function.document) {
                    host.worker_address(&function.tenant, &function.name, &spec).await;
                }
            }
        }
        Ok(self.handlers)
    }
}

/// An address that listens everywhere is reached on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => ([127, 0, 0, 1], v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => ([0, 0, 0, 0, 0, 0, 0, 1], v6.port()).into(),
        other => other,
    }
}

pub(crate) struct Host(pub(crate) Arc<LambdaHandlers>);

#[async_trait]
impl FunctionHost for Host {
    fn unreachable(&self, spec: &FunctionSpec) -> Option<&'static str> {
        (spec.reach == Reach::InProcess)
            .then_some("this server has no functions inside; use `push` or `pull`, or embed the engine in your program")
    }

    async fn worker_address(&self, tenant: &TenantId, name: &FunctionName, spec: &FunctionSpec) -> Option<String> {
        if spec.reach != Reach::Pull {
            return None;
        }
        match self.0.open_pull(tenant, name.as_str()).await {
            Ok(address) => Some(address.to_string()),
            Err(error) => {
                tracing::error!(function = %name, %error, "workers of the function cannot ask for work");
                None
            }
        }
    }

    async fn version_address(&self, tenant: &TenantId, name: &FunctionName, version: u64) -> Option<String> {
        match self.0.open_version(tenant, name.as_str(), &version.to_string()).await {
            Ok(address) => Some(address.to_string()),
            Err(error) => {
                tracing::error!(function = %name, version, %error, "workers of the version cannot ask for work");
                None
            }
        }
    }

    fn awaited_worker(&self, tenant: &TenantId, run_id: &RunId) -> Option<String> {
        self.0.awaited_worker(tenant, run_id)
    }

    fn workers(&self, tenant: &TenantId, name: &FunctionName, spec: &FunctionSpec) -> Option<u64> {
        let count = || self.0.live_workers(tenant, name.as_str());
        (spec.reach == Reach::Pull).then(|| u64::try_from(count()).unwrap_or(u64::MAX))
    }
}

/// Records which workers are silent, and which are heard again.
async fn record_news(mut news: mpsc::Receiver<RuntimeEvent>, runtime: Runtime) {
    while let Some(event) = news.recv().await {
        runtime.note(event).await;
    }
}

/// Stores what workers write, run by run.
async fn keep_lines(mut lines: mpsc::Receiver<CapturedLine>, store: Arc<dyn Store>) {
    let mut batch = Vec::new();
    while lines.recv_many(&mut batch, LINES_TOGETHER).await > 0 {
        let mut by_run: Vec<((RunId, TenantId), Vec<LogLine>)> = Vec::new();
        for line in batch.drain(..) {
            tracing::debug!(function = line.function, source = line.source.as_str(), "{}", line.text);
            let Some(run_id) = line.run_id else { continue };
            let source = match line.source {
                servo_adapter_lambda::Source::Stdout => LineSource::Stdout,
                servo_adapter_lambda::Source::Stderr => LineSource::Stderr,
            };
            let kept =
                LogLine { at: line.at, request_id: line.request_id.unwrap_or_default(), source, text: line.text };
            let of = (run_id, line.tenant);
            match by_run.iter_mut().find(|(run, _)| *run == of) {
                Some((_, kept_lines)) => kept_lines.push(kept),
                None => by_run.push((of, vec![kept])),
            }
        }
        for ((run_id, tenant), lines) in by_run {
            if let Err(error) = store.put_lines(&run_id, &tenant, lines).await {
                tracing::debug!(%run_id, %error, "lines of a worker were not stored");
            }
        }
    }
}

/// One `--function NAME=TARGET`.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    name: FunctionName,
    target: Target,
}

#[derive(Debug, Clone)]
enum Target {
    Url(String),
    Program(PathBuf),
}

impl Given {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |what: String| {
            Failure::usage(format!("--function {text}: {what}"))
                .hint("such as --function orders=http://127.0.0.1:9000 or --function orders=./orders")
        };
        let (name, target) = text.split_once('=').ok_or_else(|| wrong("there is no `=`".to_owned()))?;
        let name = FunctionName::parse(name).map_err(|invalid| wrong(invalid.to_string()))?;
        let target = if target.starts_with("http://") || target.starts_with("https://") {
            Target::Url(target.to_owned())
        } else if Path::new(target).is_file() {
            Target::Program(PathBuf::from(target))
        } else {
            return Err(wrong(format!("`{target}` is neither an http address nor a file")));
        };
        Ok(Self { name, target })
    }

    /// Whether a program of ours is its worker.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.target, Target::Program(_))
    }

    /// Registers the function and, for a program, starts it.
    pub(crate) async fn begin(&self, runtime: &Runtime, handlers: &LambdaHandlers) -> Result<(), Failure> {
        let tenant = TenantId::default_tenant();
        let reach = match &self.target {
            Target::Url(url) => Reach::Push { url: url.clone() },
            Target::Program(_) => Reach::Pull,
        };
        let document = serde_json::to_string(&FunctionSpec::new(reach)).expect("a registration serialises");
        let stored = runtime.engine().store().put_function(&tenant, &self.name, &document).await;
        let stored = stored.map_err(|error| crate::stores::refused("the store", error))?;
        if let Target::Program(program) = &self.target {
            // A bare name would be searched in PATH.
            let program = std::path::absolute(program).unwrap_or_else(|_| program.clone());
            let mut command = WorkerCommand::new(program);
            command.version = stored.version.to_string();
            let started = handlers.supervise(&tenant, self.name.as_str(), command).await;
            started.map_err(|error| Failure::usage(error.to_string()))?;
        }
        tracing::info!(function = %self.name, version = stored.version, "registered");
        Ok(())
    }
}
