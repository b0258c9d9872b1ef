//! Code that this node runs itself: Starlark, in children of this same program.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, LineSink, Reply};
use servo_adapter_lambda::LambdaHandlers;
use servo_adapter_starlark::{LANGUAGE, NoSecrets, Parts, Settings, Starlark};
use servo_cli::{Failure, exit};
use servo_entrypoint::validate::SourceIssue;
use servo_model::function::Reach;
use servo_runtime::serverless::{Platform, STARLARK, Serverless, SourceCheck};
use servo_runtime::{Clock, Runtime};
use servo_server::config::ServerlessConfig;

/// The first argument of a child.
pub(crate) const WORKER: &str = "starlark-worker";
/// This program's allocator reserves a gigabyte, which a child could fill unseen by its limit on memory. In children it asks the
/// system for each piece.
const NOTHING_IN_STORE: (&str, &str) = ("MIMALLOC_DISALLOW_ARENA_ALLOC", "1");

pub(crate) fn starlark(
    config: &ServerlessConfig,
    lines: Arc<dyn LineSink>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Starlark>, Failure> {
    let failed = |reason: String| Failure::new(exit::ERROR, reason);
    let program =
        std::env::current_exe().map_err(|error| failed(format!("this program cannot find itself: {error}")))?;
    let mut settings = Settings::new(program, [WORKER.to_owned()]);
    settings.env = vec![(NOTHING_IN_STORE.0.to_owned(), NOTHING_IN_STORE.1.to_owned())];
    settings.children_max = config.children_max;
    settings.egress.allow_hosts.clone_from(&config.egress_allow_hosts);
    settings.egress.allow_nets.clone_from(&config.egress_allow_nets);
    let clock = clock.clone();
    let now = Arc::new(move || clock.now());
    let starlark = Starlark::new(Parts { settings, lines, secrets: Arc::new(NoSecrets), now });
    starlark.map(Arc::new).map_err(|error| failed(error.to_string()))
}

/// Code goes to its sandbox, everything else to the handlers of Lambda's API.
pub(crate) struct AllHandlers {
    pub(crate) lambda: Arc<LambdaHandlers>,
    pub(crate) starlark: Arc<Starlark>,
}

#[async_trait]
impl Handlers for AllHandlers {
    /// Hands the future on as it is: an async function would put it into another box.
    fn call<'life0, 'async_trait>(
        &'life0 self,
        call: Box<HandlerCall>,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, HandlerFailure>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        match &call.spec.reach {
            Reach::Code(code) if code.language == LANGUAGE => self.starlark.call(call),
            Reach::Code(_) | Reach::Push { .. } | Reach::Pull | Reach::InProcess => self.lambda.call(call),
        }
    }

    fn keeps_time(&self, reach: &Reach) -> bool {
        self.lambda.keeps_time(reach)
    }
}

struct Sources(Arc<Starlark>);

#[async_trait]
impl SourceCheck for Sources {
    async fn check(&self, language: &str, source: &str) -> Vec<SourceIssue> {
        if language != LANGUAGE {
            let message = format!("nothing here runs `{language}`");
            return vec![SourceIssue { line: 1, column: 1, message, suggestion: Some(format!("use `{LANGUAGE}`")) }];
        }
        let Err(issues) = self.0.check(source).await else { return Vec::new() };
        let issue = |issue: servo_adapter_starlark::SourceIssue| SourceIssue {
            line: issue.line,
            column: issue.column,
            message: issue.message,
            suggestion: issue.suggestion,
        };
        issues.into_iter().map(issue).collect()
    }
}

/// The serverless runtime over a running engine.
pub(crate) fn serverless(config: &ServerlessConfig, runtime: &Runtime, starlark: &Arc<Starlark>) -> Serverless {
    let executions = runtime.executions().clone();
    starlark.bind(Arc::new(executions.clone()));
    starlark.warm_up();
    let mut platform = Platform::new(runtime.engine());
    platform.adapters.push(STARLARK.to_owned());
    platform.sources = Arc::new(Sources(starlark.clone()));
    let quotas = &mut platform.policy.quotas;
    quotas.max_concurrent_executions = config.max_concurrent_executions;
    quotas.max_definitions = config.max_definitions;
    quotas.max_memory_per_execution_mb = config.max_memory_per_execution_mb;
    quotas.max_cpu_per_execution = config.max_cpu_per_execution;
    quotas.max_execution_duration_seconds = config.max_execution_duration_seconds;
    platform.dead_letter_grace = std::time::Duration::from_secs(config.dead_letter_grace_seconds);
    platform.sync_wait = std::time::Duration::from_secs(config.sync_wait_seconds);
    Serverless::new(executions, platform)
}
