//! Starting an invocation: the checks in their published order, then one append.

use std::sync::Arc;

use serde_json::Value;
use servo_canon::Digest;
use servo_entrypoint::cache::{self, Earlier, Key, Lookup};
use servo_entrypoint::validate::mode;
use servo_entrypoint::{
    Created, InvocationMetrics, InvocationMode, InvocationObservability, InvocationRecord, InvocationRequest,
    InvocationResult, InvocationStatus, InvocationTimestamps, RuntimeErrorPayload, TenantRuntimePolicy,
    ValidationError, ValidationIssue, errors,
};
use servo_model::{Permission, RunId, RunState, SecurityContext, trace};
use servo_store::Scope;

use super::record::{is_settled, record};
use super::{Answer, Begin, Serverless, engine_error, failure_of, internal, store_error};
use crate::clock::Deadline;
use crate::engine::{Entered, Error};
use crate::entrypoints::Loaded;

/// A start whose checks have passed.
pub(super) struct Checked<'a> {
    pub loaded: Arc<Loaded>,
    pub mode: InvocationMode,
    /// As JSON.
    pub params: String,
    pub policy: &'a TenantRuntimePolicy,
    /// What the caller should know about the entrypoint that its name has led to.
    pub warnings: Vec<String>,
}

impl Serverless {
    pub(super) async fn start(
        &self,
        ctx: &SecurityContext,
        request: InvocationRequest,
        heard: Option<Arc<dyn Created>>,
    ) -> Answer<InvocationResult> {
        Self::allow(ctx, Permission::RunsTrigger)?;
        let checked = self.check(ctx, &request).await?;
        if request.dry_run {
            drop(self.check_quota(ctx, checked.policy).await?);
            self.executions.referred(&checked.loaded).await.map_err(failure_of)?;
            let record = self.made_up(ctx, &checked)?;
            let warnings = checked.warnings;
            return Ok(InvocationResult { record, dry_run: true, cached: false, repeated: false, warnings });
        }
        let key = match request.idempotency_key.as_deref() {
            None => None,
            Some(key) => {
                let definition = &checked.loaded.entrypoint;
                let version = &definition.definition.version;
                let key =
                    Key::new(ctx, checked.loaded.owner.owner_type, &definition.entrypoint_id, version, check_key(key)?);
                Some(key.digest())
            }
        };
        if let Some(key) = key
            && let Some(answer) = self.earlier(ctx, &checked, key).await?
        {
            return Ok(answer);
        }
        self.entrypoints().check_rate(ctx, &checked.loaded).await?;
        let entered = self.check_quota(ctx, checked.policy).await?;
        let (record, created) = self.create(ctx, &checked, key, None, (entered, heard)).await?;
        let warnings = checked.warnings;
        Ok(InvocationResult { record, dry_run: false, cached: false, repeated: !created, warnings })
    }

    /// There is such an entrypoint, it can be called, and takes these params.
    async fn check(&self, ctx: &SecurityContext, request: &InvocationRequest) -> Answer<Checked<'_>> {
        let policy = self.policy();
        if !policy.enabled {
            return Err(errors::forbidden("the serverless runtime is disabled for this tenant"));
        }
        let (loaded, warnings) = self.called(ctx, &request.entrypoint_id).await?;
        loaded.check_callable()?;
        let mode = mode(&loaded.entrypoint.definition.traits, request.mode);
        let params = loaded.compiled.check_params(Some(&request.params));
        let (mode, params) = match (mode, params) {
            (Ok(mode), Ok(params)) => (mode, params),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
            // All that is wrong, in one answer.
            (Err(first), Err(second)) => return Err(both(&first, &second)),
        };
        let params = serde_json::to_string(&params).map_err(|error| internal(&error))?;
        let most = self.engine().config().limits.payload_bytes_max;
        if params.len() > most {
            let message = format!("the params have {} bytes, and at most {most} are taken", params.len());
            let issue = ValidationIssue::new("limit_exceeded", "$.params", message);
            let issue = issue.suggest("store large data elsewhere and pass a reference to it");
            return Err(ValidationError::new(vec![issue]).into());
        }
        Ok(Checked { loaded, mode, params, policy, warnings })
    }

    /// The entrypoint of an address, if the caller may see it.
    pub(super) async fn visible(&self, ctx: &SecurityContext, address: &str) -> Answer<Arc<Loaded>> {
        let found = self.entrypoints().find(&ctx.tenant, address).await.map_err(store_error)?;
        match self.seen(ctx, found).await {
            Some(loaded) => Ok(loaded),
            None => Err(self.nothing(ctx, address).await),
        }
    }

    /// Runs that are queued or running; those that wait hold no place.
    pub(super) async fn check_quota(&self, ctx: &SecurityContext, policy: &TenantRuntimePolicy) -> Answer<Entered> {
        let (most, now) = (policy.quotas.max_concurrent_executions, self.engine().clock().elapsed());
        let quotas = self.engine().quotas();
        if let Some(entered) = quotas.enter(&ctx.tenant, most, now, self.engine().is_alone()) {
            return Ok(entered);
        }
        let counts = self.engine().store().count_by_visible(&ctx.tenant, None).await.map_err(store_error)?;
        let busy = counts.iter().filter(|(status, _)| !is_settled(*status)).map(|(_, count)| count).sum::<u64>();
        if let Some(entered) = quotas.counted(&ctx.tenant, busy, most, now) {
            return Ok(entered);
        }
        let failure = errors::quota_exceeded(format!(
            "{busy} invocations of the tenant are under way, and {most} may be; try again when one has ended"
        ));
        Err(errors::with_wait(failure, 1))
    }

    /// What an earlier start under the same key answers this one with, if it still counts.
    async fn earlier(
        &self,
        ctx: &SecurityContext,
        checked: &Checked<'_>,
        key: Digest,
    ) -> Answer<Option<InvocationResult>> {
        let store = self.engine().store();
        let Some(run_id) = store.find_request(&ctx.tenant, key).await.map_err(store_error)? else { return Ok(None) };
        let digest = Digest::of(checked.params.as_bytes());
        let look = |state: &RunState| Some((record(state)?, state.request_digest == Some(digest)));
        let found = match self.engine().view(&Self::scope(ctx), &run_id, look).await {
            Ok(found) => found,
            Err(Error::Store(servo_store::Error::NotFound)) => None,
            Err(error) => return Err(engine_error(error)),
        };
        let Some((record, same_params)) = found else { return Ok(None) };
        let earlier = Earlier {
            status: record.status,
            created_at: record.timestamps.created_at,
            finished_at: record.timestamps.finished_at,
            same_params,
        };
        let window = checked.policy.idempotency.deduplication_window_seconds;
        let policy = cache::Policy::of(&checked.loaded.entrypoint.definition.traits, window);
        match cache::lookup(Some(&earlier), self.engine().now(), policy) {
            Lookup::Fresh => {
                store.release_request(&ctx.tenant, key, &run_id).await.map_err(store_error)?;
                Ok(None)
            }
            Lookup::Mismatch => {
                let message = "this Idempotency-Key was used with other params; take a new key";
                let issue = ValidationIssue::new("idempotency_mismatch", "$.params", message);
                Err(ValidationError::new(vec![issue]).into())
            }
            Lookup::Hit => {
                let warnings = checked.warnings.clone();
                Ok(Some(InvocationResult { record, dry_run: false, cached: true, repeated: true, warnings }))
            }
            Lookup::Repeat | Lookup::InFlight => {
                let record = self.answer(ctx, &run_id, self.deadline(checked.mode)).await?;
                let warnings = checked.warnings.clone();
                Ok(Some(InvocationResult { record, dry_run: false, cached: false, repeated: true, warnings }))
            }
        }
    }

    /// Starts the run, and waits for it if the caller does. False if another start was faster with the same key.
    pub(super) async fn create(
        &self,
        ctx: &SecurityContext,
        checked: &Checked<'_>,
        key: Option<Digest>,
        replay_of: Option<RunId>,
        (entered, heard): (Entered, Option<Arc<dyn Created>>),
    ) -> Answer<(InvocationRecord, bool)> {
        let referred = self.executions.referred(&checked.loaded).await.map_err(failure_of)?;
        // The answer to a replay is the new run.
        let waits = checked.mode == InvocationMode::Sync && replay_of.is_none();
        let begin = Begin {
            loaded: &checked.loaded,
            tenant: ctx.tenant.clone(),
            subject: ctx.subject.clone(),
            correlation_id: self.correlation(ctx),
            mode: checked.mode,
            params: checked.params.clone(),
            seconds_max: checked.policy.quotas.max_execution_duration_seconds,
            dead_letter_grace_seconds: self.platform.dead_letter_grace.as_secs(),
            parent: None,
            compensates: None,
            replay_of,
            trace: ctx.trace.map(|own| trace::with_state(own.traceparent(), ctx.trace_state.as_deref())),
        };
        let start = self.executions.begin(begin, referred).map_err(failure_of)?;
        let mut deadline = self.deadline(checked.mode).filter(|_| waits);
        let started = self.engine().start_execution(start, key, (Some(entered), heard), deadline.as_mut()).await;
        let (run_id, created) = started.map_err(|error| match error {
            Error::RequestMismatch => {
                let issue = ValidationIssue::new(
                    "idempotency_mismatch",
                    "$.params",
                    "another start used this Idempotency-Key with other params; take a new key",
                );
                ValidationError::new(vec![issue]).into()
            }
            other => engine_error(other),
        })?;
        let record = self.answer(ctx, &run_id, deadline).await?;
        let is_accepted = created && !waits;
        Ok((if is_accepted { as_accepted(record) } else { record }, created))
    }

    /// How long a caller waits for a run, if it does.
    fn deadline(&self, mode: InvocationMode) -> Option<Deadline> {
        let is_sync = mode == InvocationMode::Sync;
        is_sync.then(|| Deadline::new(self.engine().clock().as_ref(), self.platform.sync_wait))
    }

    /// The run as it is now; a caller with a deadline gets it when it has ended or waits.
    async fn answer(
        &self,
        ctx: &SecurityContext,
        run_id: &RunId,
        deadline: Option<Deadline>,
    ) -> Answer<InvocationRecord> {
        let (engine, scope) = (self.engine(), Self::scope(ctx));
        let Some(mut deadline) = deadline else { return self.read(&scope, run_id).await };
        // A record holds params and result, which may be large; only the last look needs it.
        let look = |state: &RunState| {
            let is_open = state.entrypoint().is_some() && !is_settled(state.visible());
            (!is_open).then(|| record(state))
        };
        // Most have come to rest by now.
        if let Some(record) = engine.view(&scope, run_id, look).await.map_err(engine_error)? {
            return record.ok_or_else(super::no_invocation);
        }
        let listener = engine.listen_for_end(run_id);
        loop {
            if let Some(record) = engine.view(&scope, run_id, look).await.map_err(engine_error)? {
                return record.ok_or_else(super::no_invocation);
            }
            tokio::select! {
                biased;
                () = listener.rung() => {}
                // A suspension or an end on another node rings no bell here.
                () = engine.clock().sleep(engine.config().poll()) => {}
                () = deadline.over() => break,
            }
        }
        self.read(&scope, run_id).await
    }

    pub(super) async fn read(&self, scope: &Scope, run_id: &RunId) -> Answer<InvocationRecord> {
        let found = self.engine().view(scope, run_id, record).await.map_err(engine_error)?;
        found.ok_or_else(super::no_invocation)
    }

    fn correlation(&self, ctx: &SecurityContext) -> String {
        if ctx.correlation_id.is_empty() {
            return self.engine().ids().event_id(self.engine().now()).to_string();
        }
        ctx.correlation_id.clone()
    }

    /// The record of a run that could start and does not.
    fn made_up(&self, ctx: &SecurityContext, checked: &Checked<'_>) -> Answer<InvocationRecord> {
        let engine = self.engine();
        let id = engine.ids().run_id(engine.now());
        let definition = &checked.loaded.entrypoint.definition;
        let params: Value = serde_json::from_str(&checked.params).map_err(|error| internal(&error))?;
        Ok(InvocationRecord {
            invocation_id: id.as_str().replacen("inv_", "dryrun_", 1),
            entrypoint_id: checked.loaded.entrypoint.entrypoint_id.clone(),
            entrypoint_version: definition.version.clone(),
            tenant_id: ctx.tenant.to_string(),
            status: InvocationStatus::Queued,
            mode: checked.mode,
            params,
            result: None,
            error: None,
            timestamps: InvocationTimestamps {
                created_at: engine.now(),
                started_at: None,
                suspended_at: None,
                finished_at: None,
            },
            observability: InvocationObservability {
                correlation_id: self.correlation(ctx),
                trace_id: None,
                span_id: None,
                metrics: InvocationMetrics {
                    memory_limit_mb: definition.traits.limits.memory_mb(),
                    ..InvocationMetrics::default()
                },
            },
            blocked_by: Vec::new(),
            earliest_at: None,
            imported_by: None,
            imported_at: None,
            compensation: None,
            operations: Vec::new(),
            operations_total: None,
        })
    }
}

/// What was accepted, however far it is by now: callers may count on that.
fn as_accepted(record: InvocationRecord) -> InvocationRecord {
    let created_at = record.timestamps.created_at;
    // What it waits for by now is none of it.
    let is_queued = record.status == InvocationStatus::Queued;
    let (blocked_by, earliest_at) =
        if is_queued { (record.blocked_by, record.earliest_at) } else { Default::default() };
    let InvocationObservability { metrics, .. } = record.observability;
    let metrics = InvocationMetrics { memory_limit_mb: metrics.memory_limit_mb, ..InvocationMetrics::default() };
    InvocationRecord {
        status: InvocationStatus::Queued,
        result: None,
        error: None,
        timestamps: InvocationTimestamps { created_at, started_at: None, suspended_at: None, finished_at: None },
        observability: InvocationObservability { metrics, ..record.observability },
        blocked_by,
        earliest_at,
        ..record
    }
}

fn check_key(key: &str) -> Answer<&str> {
    if (1..=cache::KEY_CHARS_MAX).contains(&key.chars().count()) {
        return Ok(key);
    }
    Err(errors::bad_request(format!("an Idempotency-Key has 1 to {} characters", cache::KEY_CHARS_MAX)))
}

fn both(first: &RuntimeErrorPayload, second: &RuntimeErrorPayload) -> RuntimeErrorPayload {
    let issues = |failure| ValidationError::of(failure).map(|error| error.issues).unwrap_or_default();
    ValidationError::new(issues(first).into_iter().chain(issues(second)).collect()).into()
}
