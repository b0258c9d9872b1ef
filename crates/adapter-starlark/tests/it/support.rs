//! An adapter with children, calls to it, and what it wrote.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use servo_adapter::{CapturedLine, HandlerCall, HandlerFailure, Handlers as _, LineSink, Reply, Right};
use servo_adapter_starlark::{NoSecrets, Parts, Settings, Starlark};
use servo_model::function::{Code, FunctionSpec, Reach};
use servo_model::invocation::{Checkpointing, Failure, RetryRule};
use servo_model::{RunId, TenantId, Timestamp};

/// The time that children are told.
pub(crate) const NOW_MILLIS: i64 = 1_767_225_600_250;

#[derive(Debug, Default)]
pub(crate) struct Lines(pub(crate) Mutex<Vec<CapturedLine>>);

impl LineSink for Lines {
    fn line(&self, line: CapturedLine) {
        self.0.lock().unwrap().push(line);
    }
}

impl Lines {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|line| line.text.clone()).collect()
    }
}

/// The example lies beside the folder of the test's own binary.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap();
    let program = folder.join("examples").join("starlark_worker");
    assert!(program.exists(), "build {} first: cargo build -p servo-adapter-starlark --examples", program.display());
    program
}

pub(crate) fn settings() -> Settings {
    // How many checkpoints there are must not depend on how busy the machine is.
    let step_told_after = Duration::from_secs(3_600);
    Settings { spare: 0, step_told_after, ..Settings::new(program(), []) }
}

pub(crate) struct World {
    pub(crate) starlark: Starlark,
    pub(crate) lines: Arc<Lines>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::from_parts(|parts| parts.settings = settings)
    }

    pub(crate) fn from_parts(change: impl FnOnce(&mut Parts)) -> Self {
        let lines = Arc::new(Lines::default());
        let mut parts = Parts {
            settings: settings(),
            lines: lines.clone(),
            secrets: Arc::new(NoSecrets),
            now: Arc::new(|| Timestamp::from_millis(NOW_MILLIS)),
        };
        change(&mut parts);
        Self { starlark: Starlark::new(parts).unwrap(), lines }
    }

    /// Calls a plain function.
    pub(crate) async fn call(&self, source: &str, input: &str) -> Result<Reply, HandlerFailure> {
        self.starlark.call(Box::new(plain(source, input))).await
    }

    pub(crate) async fn result(&self, source: &str, input: &str) -> Value {
        let reply = self.call(source, input).await.unwrap();
        serde_json::from_str(&reply.text).unwrap()
    }

    pub(crate) async fn failure(&self, source: &str, input: &str) -> Failure {
        Failure::of(&self.call(source, input).await.unwrap_err().error)
    }
}

pub(crate) fn code(source: &str) -> Code {
    Code {
        language: "starlark".to_owned(),
        source: source.into(),
        memory_mb: 64,
        cpu_milli: 1_000,
        retry: RetryRule {
            max_attempts: 3,
            initial_delay_ms: 1_000,
            max_delay_ms: 60_000,
            backoff_permille: 2_000,
            non_retryable_errors: Vec::new(),
        },
        checkpointing: Checkpointing::Automatic,
    }
}

pub(crate) fn plain(source: &str, input: &str) -> HandlerCall {
    call_of(code(source), false, input)
}

pub(crate) fn call_of(code: Code, durable: bool, payload: &str) -> HandlerCall {
    HandlerCall {
        tenant: TenantId::parse("acme").unwrap(),
        subject: None,
        function: "f".to_owned(),
        version: "1".to_owned(),
        spec: FunctionSpec { durable, ..FunctionSpec::new(Reach::Code(code)) },
        function_arn: "arn:aws:lambda:us-east-1:000000000000:function:f:1".to_owned(),
        request_id: "request-1".to_owned(),
        payload: payload.to_owned(),
        timeout: Duration::from_secs(20),
        tenant_id: None,
        client_context: None,
        trace: None,
        run_id: RunId::parse("inv_1").unwrap(),
        is_awaited: true,
        right: Right::unlimited(),
    }
}
