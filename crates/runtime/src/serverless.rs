//! The serverless runtime: entrypoints and their invocations, over the same runs as everything else.
//!
//! Implements the published trait (`servo_entrypoint::ServerlessRuntime`). A thin shell: what is valid and possible is decided
//! in `servo-entrypoint` and `servo-machine`, what runs is an execution.

mod api;
mod begin;
mod blocked;
mod bulk;
mod catalog;
mod control;
mod list;
mod names;
mod pages;
mod record;
mod referring;
mod refusal;
mod registry;
mod sorted;
mod start;
mod timeline;
mod visible;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use servo_entrypoint::access::{AccessControl, NothingShared};
use servo_entrypoint::rate::{Limiters, TokenBucket};
use servo_entrypoint::validate::SourceIssue;
use servo_entrypoint::{RuntimeErrorPayload, TenantRuntimePolicy, errors, pin};
use servo_model::{Permission, SecurityContext};
use servo_store::Scope;

use crate::engine::{Engine, Error};
use crate::entrypoints::{Entrypoints, Rules};
use crate::executions::{Executions, Refused};

pub(crate) use begin::Begin;
pub(crate) use record::record;
pub use referring::Referring;
pub use visible::{Hidden, Sight};

/// Reads source code before it is registered.
#[async_trait]
pub trait SourceCheck: Send + Sync {
    /// What is wrong with it; an adapter that does not know the language says so.
    async fn check(&self, language: &str, source: &str) -> Vec<SourceIssue>;
}

/// For nodes that run no code of their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSources;

#[async_trait]
impl SourceCheck for NoSources {
    async fn check(&self, language: &str, _source: &str) -> Vec<SourceIssue> {
        let message = format!("nothing here runs `{language}`");
        vec![SourceIssue { line: 1, column: 1, message, suggestion: None }]
    }
}

/// Adapters and limiters of this node.
#[derive(Clone)]
pub struct Platform {
    /// Ids of the adapters that entrypoints may name.
    pub adapters: Vec<String>,
    pub sources: Arc<dyn SourceCheck>,
    /// Shares entrypoints beyond what their owners say.
    pub access: Arc<dyn AccessControl>,
    pub limiters: Limiters,
    /// What holds for a tenant that nobody configured.
    pub policy: TenantRuntimePolicy,
    /// How long a failed run rests before it is a dead letter.
    pub dead_letter_grace: Duration,
    /// The longest that a synchronous call is kept waiting.
    pub sync_wait: Duration,
}

impl std::fmt::Debug for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Platform").field("adapters", &self.adapters).finish_non_exhaustive()
    }
}

impl Platform {
    /// The adapter of Lambda's handlers is everywhere; whoever runs code adds its own.
    pub fn new(engine: &Engine) -> Self {
        let mut limiters = Limiters::default();
        let clock = engine.clock().clone();
        // Registered first, so it is not taken.
        let _ = limiters.register(Arc::new(TokenBucket::new(move || clock.now())));
        Self {
            adapters: vec![LAMBDA.to_owned()],
            sources: Arc::new(NoSources),
            access: Arc::new(NothingShared),
            limiters,
            policy: TenantRuntimePolicy::platform_default(""),
            dead_letter_grace: Duration::from_secs(pin::DEAD_LETTER_GRACE_SECONDS),
            sync_wait: Duration::from_secs(900),
        }
    }
}

pub use servo_entrypoint::gts::{LAMBDA, STARLARK};

type Answer<T> = Result<T, RuntimeErrorPayload>;

/// A handle: cheap to clone.
#[derive(Debug, Clone)]
pub struct Serverless {
    executions: Executions,
    platform: Arc<Platform>,
    sight: Sight,
}

impl Serverless {
    pub fn new(executions: Executions, platform: Platform) -> Self {
        let sight = Sight::new(executions.clone(), platform.access.clone());
        let rules = Rules { access: platform.access.clone(), limiters: platform.limiters.clone() };
        executions.entrypoints().set_rules(rules);
        Self { executions, platform: Arc::new(platform), sight }
    }

    /// What there is for a caller, for the other APIs that show runs.
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    fn engine(&self) -> &Engine {
        self.executions.engine()
    }

    fn entrypoints(&self) -> &Entrypoints {
        self.executions.entrypoints()
    }

    /// What holds for a tenant. Nobody configures one yet, so it is the same for all.
    fn policy(&self) -> &TenantRuntimePolicy {
        &self.platform.policy
    }

    fn allow(ctx: &SecurityContext, permission: Permission) -> Answer<()> {
        if ctx.may(permission) {
            return Ok(());
        }
        Err(errors::forbidden(format!("this needs the role {}", permission.role().as_str())))
    }

    fn scope(ctx: &SecurityContext) -> Scope {
        Scope::Tenant(ctx.tenant.clone())
    }
}

fn no_invocation() -> RuntimeErrorPayload {
    errors::not_found("there is no such invocation")
}

fn no_entrypoint(address: &str) -> RuntimeErrorPayload {
    errors::not_found(format!("there is no entrypoint `{address}`"))
}

/// What went wrong inside is for the log, not for the caller.
fn internal(error: &dyn std::fmt::Display) -> RuntimeErrorPayload {
    tracing::warn!(%error, "a call of the serverless runtime failed");
    errors::internal("the service could not do this now; try again")
}

/// The same where another try in a moment may go well.
fn unavailable(error: &dyn std::fmt::Display) -> RuntimeErrorPayload {
    tracing::warn!(%error, "a call of the serverless runtime came at a bad time");
    errors::unavailable("the service could not do this now; try again")
}

fn store_error(error: servo_store::Error) -> RuntimeErrorPayload {
    match error {
        servo_store::Error::Limit { what, limit } => {
            errors::bad_request(format!("{what} is over its limit of {limit}"))
        }
        // What is stored and asked for comes from callers.
        servo_store::Error::Invalid { reason, .. } => errors::bad_request(reason),
        other => {
            let error = Error::Store(other);
            if error.is_for_now() { unavailable(&error) } else { internal(&error) }
        }
    }
}

fn engine_error(error: Error) -> RuntimeErrorPayload {
    match error {
        // Refusals of what was asked of a run are told where it is asked; this is one that a race has made.
        Error::Refused(refusal) => {
            tracing::debug!(%refusal, "a call of the serverless runtime was refused");
            errors::conflict("the invocation has changed at the same time; read it again")
        }
        Error::Quarantined(_) => errors::internal(
            "the invocation's log cannot be read, so it was set aside; whoever operates the server finds the reason in its alerts",
        ),
        Error::Invalid(invalid) => errors::bad_request(invalid.to_string()),
        Error::Overloaded { retry_after } => {
            let failure = errors::quota_exceeded("as many invocations are under way as may be; try again later");
            errors::with_wait(failure, retry_after.as_secs().max(1))
        }
        Error::Store(servo_store::Error::NotFound) => no_invocation(),
        // What the engine writes is its own.
        Error::Store(error @ servo_store::Error::Invalid { .. }) => internal(&error),
        Error::Store(error) => store_error(error),
        other if other.is_for_now() => unavailable(&other),
        other => internal(&other),
    }
}

/// A refusal of the durable API in the words of this one.
pub(crate) fn failure_of(refused: Refused) -> RuntimeErrorPayload {
    match refused.name.status() {
        404 => errors::not_found(refused.message),
        409 => errors::conflict(refused.message),
        429 => errors::quota_exceeded(refused.message),
        503 => errors::unavailable(refused.message),
        500.. => errors::internal(refused.message),
        _ => errors::bad_request(refused.message),
    }
}
