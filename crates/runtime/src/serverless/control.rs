//! Control of a run that is there: cancel, suspend, resume, retry, replay, and messages.

use servo_entrypoint::{
    BlockedBy, Cause, InvocationControlAction as Action, InvocationRecord, InvocationSignal, InvocationStatus,
    SignalOutcome, SignalResult, ValidationError, ValidationIssue, control, errors,
};
use servo_machine::{Command, Signal, SignalKind};
use servo_model::{Permission, RunId, RunState, SecurityContext, SignalId, StepId};

use super::record::record;
use super::start::Checked;
use super::{Answer, Serverless, engine_error, no_invocation, refusal};
use crate::engine::{Entered, Error, Order};

/// A message has at most so many bytes.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
const NAME_CHARS_MAX: usize = 128;
/// Things that a run waits for, in one sentence.
const NAMED_MAX: usize = 5;

/// Whether dead-lettered runs are taken back as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redrive {
    No,
    Yes,
}

/// A run on which an action is possible.
pub(super) struct Controlled<'a> {
    run_id: RunId,
    earlier: InvocationRecord,
    /// If the action starts something.
    again: Option<Checked<'a>>,
}

pub(super) fn permission(action: &Action) -> Permission {
    match action {
        Action::Cancel => Permission::RunsCancel,
        Action::Replay => Permission::RunsTrigger,
        Action::Suspend | Action::Resume | Action::SkipStep { .. } => Permission::RunsControl,
        Action::Retry | Action::RetryStep { .. } => Permission::RunsRetry,
    }
}

impl Serverless {
    /// What an action is decided by before anything is done. A rate and a quota are only asked when it is done.
    pub(super) async fn check_control(
        &self,
        ctx: &SecurityContext,
        invocation_id: &str,
        action: &Action,
        redrive: Redrive,
    ) -> Answer<Controlled<'_>> {
        Self::allow(ctx, permission(action))?;
        let run_id = RunId::parse(invocation_id).map_err(|_| no_invocation())?;
        let look = |state: &RunState| Some((record(state)?, state.entrypoint()?.kind, state.entrypoint()?.id.clone()));
        let found = self.engine().view(&Self::scope(ctx), &run_id, look).await.map_err(engine_error)?;
        let (earlier, kind, entrypoint) = found.ok_or_else(no_invocation)?;
        self.check_run_of(ctx, &entrypoint).await?;
        let redriven = redrive == Redrive::Yes && *action == Action::Retry && control::may_redrive(earlier.status);
        if !redriven {
            control::check(action, earlier.status, kind)?;
        }
        if let Action::RetryStep { step_id } | Action::SkipStep { step_id } = action {
            step(step_id)?;
        }
        // What opens a run again is a start of it, and a replay is one.
        let starts = matches!(action, Action::Retry | Action::Replay) || earlier.status == InvocationStatus::Failed;
        let again = if starts { Some(self.check_again(ctx, &entrypoint).await?) } else { None };
        Ok(Controlled { run_id, earlier, again })
    }

    pub(super) async fn control(
        &self,
        ctx: &SecurityContext,
        invocation_id: &str,
        action: Action,
        redrive: Redrive,
    ) -> Answer<InvocationRecord> {
        let Controlled { run_id, earlier, again } = self.check_control(ctx, invocation_id, &action, redrive).await?;
        let mut entered = None;
        if let Some(again) = &again {
            self.entrypoints().check_rate(ctx, &again.loaded).await?;
            entered = Some(self.check_quota(ctx, again.policy).await?);
        }
        match action {
            Action::Replay => self.replay(ctx, &run_id, &earlier, again.zip(entered)).await,
            Action::Retry => self.signal_run(ctx, &run_id, SignalKind::RetryRun).await,
            Action::Cancel => self.signal_run(ctx, &run_id, SignalKind::Cancel).await,
            Action::Suspend => self.signal_run(ctx, &run_id, SignalKind::Pause).await,
            Action::Resume => self.signal_run(ctx, &run_id, SignalKind::Resume).await,
            Action::RetryStep { step_id } => {
                let kind = SignalKind::RetryStep(step(&step_id)?);
                self.signal_run(ctx, &run_id, kind).await
            }
            Action::SkipStep { step_id } => {
                let kind = SignalKind::SkipStep(step(&step_id)?);
                self.signal_run(ctx, &run_id, kind).await
            }
        }
    }

    /// A retry and a replay are starts: the entrypoint can be called.
    async fn check_again(&self, ctx: &SecurityContext, entrypoint: &str) -> Answer<Checked<'_>> {
        let policy = self.policy();
        if !policy.enabled {
            return Err(errors::forbidden("the serverless runtime is disabled for this tenant"));
        }
        let loaded = self.entrypoints().current(entrypoint).await.map_err(super::store_error)?;
        let loaded = self.seen(ctx, loaded).await;
        let loaded = loaded.ok_or_else(|| {
            errors::not_active("the entrypoint is not there any more; what it started stays as it is")
        })?;
        loaded.check_callable()?;
        let mode = loaded.entrypoint.definition.traits.default_invocation;
        Ok(Checked { loaded, mode, params: String::new(), policy, warnings: Vec::new() })
    }

    async fn replay(
        &self,
        ctx: &SecurityContext,
        run_id: &RunId,
        earlier: &InvocationRecord,
        again: Option<(Checked<'_>, Entered)>,
    ) -> Answer<InvocationRecord> {
        let (checked, entered) = again.ok_or_else(|| errors::internal("a replay was not checked"))?;
        let params = serde_json::to_string(&earlier.params).map_err(|error| super::internal(&error))?;
        let checked = Checked { params, mode: earlier.mode, ..checked };
        let (record, _) = self.create(ctx, &checked, None, Some(run_id.clone()), (entered, None)).await?;
        Ok(record)
    }

    async fn signal_run(&self, ctx: &SecurityContext, run_id: &RunId, kind: SignalKind) -> Answer<InvocationRecord> {
        let id = self.engine().ids().event_id(self.engine().now()).simple().to_string();
        let signal_id = SignalId::parse(&format!("ctl_{id}")).map_err(|error| super::internal(&error))?;
        self.send(ctx, run_id, signal_id, kind, record).await
    }

    /// What is seen of the run then.
    async fn send<T>(
        &self,
        ctx: &SecurityContext,
        run_id: &RunId,
        signal_id: SignalId,
        kind: SignalKind,
        look: impl FnOnce(&RunState) -> Option<T> + Send,
    ) -> Answer<T> {
        let asked = kind.clone();
        let signal = Signal { signal_id, kind, by: ctx.subject.clone(), reason: None, denied: None };
        let order = Order::new(Self::scope(ctx), run_id.clone(), Command::Signal(signal), "engine");
        let both = |state: &RunState| (state.visible(), look(state));
        let (refusal, status, seen) = match self.engine().execute_with(order, both).await {
            Ok(outcome) => (outcome.refusal, outcome.view.0, outcome.view.1),
            // It changed since it was looked at, and is told about as it is now.
            Err(Error::Refused(refusal)) => (Some(refusal), self.read(&Self::scope(ctx), run_id).await?.status, None),
            Err(other) => return Err(engine_error(other)),
        };
        match refusal {
            Some(refusal) => Err(refusal::refused(&refusal, &asked, status)),
            None => seen.ok_or_else(no_invocation),
        }
    }

    pub(super) async fn message(
        &self,
        ctx: &SecurityContext,
        invocation_id: &str,
        signal: InvocationSignal,
    ) -> Answer<SignalResult> {
        Self::allow(ctx, Permission::RunsTrigger)?;
        let run_id = RunId::parse(invocation_id).map_err(|_| no_invocation())?;
        let mut issues = Vec::new();
        let id = SignalId::parse(&signal.signal_id);
        if let Err(invalid) = &id {
            issues.push(ValidationIssue::new("invalid_format", "$.signal_id", invalid.to_string()));
        }
        if signal.name.is_empty() || signal.name.chars().count() > NAME_CHARS_MAX {
            let message = format!("a name has 1 to {NAME_CHARS_MAX} characters");
            issues.push(ValidationIssue::new("invalid_format", "$.name", message));
        }
        let payload = serde_json::to_string(&signal.payload).map_err(|error| super::internal(&error))?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            let message = format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes");
            issues.push(ValidationIssue::new("limit_exceeded", "$.payload", message));
        }
        match id {
            Ok(signal_id) if issues.is_empty() => {
                // Whose run it is, and that it is an invocation, before anything is recorded.
                self.check_run(ctx, &run_id).await?;
                let name = signal.name.clone();
                let kind = SignalKind::Message { name: signal.name, payload: Some(payload) };
                let look = |state: &RunState| {
                    let messages = &state.execution.as_ref()?.head.messages;
                    Some((record(state)?, messages.iter().any(|message| message.name == name)))
                };
                let (record, kept) = self.send(ctx, &run_id, signal_id, kind, look).await?;
                let note = kept.then(|| kept_until(&record));
                Ok(SignalResult { record, signal: SignalOutcome { name: name.clone(), kept, note } })
            }
            _ => Err(ValidationError::new(issues).into()),
        }
    }
}

/// What a run does meanwhile that nothing in it waits for a signal which it was sent.
fn kept_until(record: &InvocationRecord) -> String {
    let waits = |blocked: &BlockedBy| match (blocked.cause, &blocked.name) {
        (Cause::Signal, Some(name)) => format!("`{name}`"),
        (cause, Some(name)) => format!("the {} `{name}`", cause.as_str()),
        (cause, None) => format!("a {}", cause.as_str()),
    };
    let named: Vec<_> = record.blocked_by.iter().take(NAMED_MAX).map(waits).collect();
    match named.as_slice() {
        [] => "kept until this run waits for it".to_owned(),
        named => format!("kept; this run waits for {}", named.join(", ")),
    }
}

fn step(text: &str) -> Answer<StepId> {
    StepId::parse(text).map_err(|invalid| {
        ValidationError::new(vec![ValidationIssue::new("invalid_format", "$.step_id", invalid.to_string())]).into()
    })
}
