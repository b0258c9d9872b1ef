//! From a store and functions to a running engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, TenantId};
use servo_runtime::executions::Resolved;
use servo_runtime::{Bus, Ids, InProcessBus, Parts, Runtime, RuntimeConfig, SystemClock, Tasks, Types};
use servo_sdk::{Handler, Options};
use servo_store::Store;

use crate::error::Error;
use crate::host::{Functions, Host};
use crate::servo::Servo;
use crate::stores::{self, Choice, Opened};

/// Collects what a program needs; [`Builder::start`] opens the store and begins.
#[derive(Clone, Default)]
pub struct Builder {
    store: Option<Choice>,
    functions: Functions,
    specs: BTreeMap<String, FunctionSpec>,
    options: Options,
    config: RuntimeConfig,
    bus: Option<Arc<dyn Bus>>,
    twice: Option<String>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl Builder {
    /// A folder, made if it is not there. It belongs to one program at a time.
    #[must_use]
    pub fn sqlite(mut self, folder: impl Into<PathBuf>) -> Self {
        self.store = Some(Choice::Sqlite(folder.into()));
        self
    }

    /// `postgres://user:password@host:port/database`. Programs that share it register the same functions.
    #[must_use]
    pub fn postgres(mut self, url: impl Into<String>) -> Self {
        self.store = Some(Choice::Postgres(url.into()));
        self
    }

    /// Nothing is left when the program ends: for tests and trying out.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.store = Some(Choice::Memory);
        self
    }

    /// A durable function under the name by which executions are started and others invoke it.
    #[must_use]
    pub fn function<E, R, H>(self, name: &str, handler: H) -> Self
    where
        E: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        H: Handler<E, R> + 'static,
    {
        self.function_with(name, handler, &FunctionSpec::new(Reach::InProcess))
    }

    /// The same with timeouts and retention of its own. How it is reached is always this process.
    #[must_use]
    pub fn function_with<E, R, H>(mut self, name: &str, handler: H, spec: &FunctionSpec) -> Self
    where
        E: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        H: Handler<E, R> + 'static,
    {
        if self.functions.add(name, handler) {
            let spec = FunctionSpec { reach: Reach::InProcess, durable: true, ..spec.clone() };
            self.specs.insert(name.to_owned(), spec);
        } else {
            self.twice.get_or_insert_with(|| name.to_owned());
        }
        self
    }

    /// What handlers are run with: checkpointing, logger, plugins.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Limits, retention and other settings of the engine.
    #[must_use]
    pub fn config(mut self, config: RuntimeConfig) -> Self {
        self.config = config;
        self
    }

    /// Where recorded facts are published, with what functions emit. A program that wants them itself gives an
    /// [`InProcessBus`] and subscribes to it.
    #[must_use]
    pub fn bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Opens the store, registers the functions and starts the engine. What was open in the store goes on at once.
    ///
    /// Needs a tokio runtime, which also runs the handlers.
    pub async fn start(self) -> Result<Servo, Error> {
        let Self { store, functions, specs, options, config, bus, twice } = self;
        if let Some(name) = twice {
            return Err(Error::Builder(format!("function `{name}` is registered twice; give one another name")));
        }
        let choice = store.ok_or_else(|| {
            Error::Builder("no store was chosen; call sqlite(folder), postgres(url) or in_memory()".to_owned())
        })?;
        let Opened { store, place, hints } = stores::open(&choice, &config.limits).await?;
        let tenant = TenantId::default_tenant();
        let registered = match register(store.as_ref(), &tenant, &specs, &place).await {
            Ok(registered) => registered,
            Err(error) => {
                // The folder is free again for whoever mends the mistake.
                let _ = store.close().await;
                return Err(error);
            }
        };
        let host = Arc::new(Host::new(functions, options));
        let tasks = Tasks::on_tokio();
        let parts = Parts {
            store,
            clock: Arc::new(SystemClock),
            ids: Arc::new(Ids::from_os()),
            tasks: tasks.clone(),
            bus: bus.unwrap_or_else(|| Arc::new(InProcessBus::default())),
            adapters: Vec::new(),
            handlers: host.clone(),
            spans: None,
            types: Types::published(),
            config,
        };
        let runtime = Runtime::start(parts).await.map_err(|error| Error::store(&place, error))?;
        host.connect(runtime.executions().clone());
        if let Some(hints) = hints {
            tasks.spawn("hints", runtime.clone().follow_hints(hints));
        }
        Ok(Servo::new(runtime, tenant, registered))
    }
}

/// Publishes the functions. An unchanged one keeps its version.
async fn register(
    store: &dyn Store,
    tenant: &TenantId,
    specs: &BTreeMap<String, FunctionSpec>,
    place: &str,
) -> Result<BTreeMap<String, Resolved>, Error> {
    let mut registered = BTreeMap::new();
    for (name, spec) in specs {
        let wrong = |reason: String| Error::Builder(format!("function `{name}`: {reason}"));
        let parsed = FunctionName::parse(name).map_err(|invalid| wrong(invalid.to_string()))?;
        spec.check().map_err(|invalid| wrong(invalid.to_string()))?;
        let document = serde_json::to_string(spec).map_err(|error| wrong(error.to_string()))?;
        let put = store.put_function(tenant, &parsed, &document).await;
        let version = put.map_err(|error| Error::store(place, error))?;
        let resolved = Resolved { name: parsed, version: version.version, spec: spec.clone(), digest: version.digest };
        registered.insert(name.clone(), resolved);
    }
    Ok(registered)
}
