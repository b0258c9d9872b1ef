//! What a run keeps of its entrypoint when it starts.

use servo_model::invocation::{EntrypointPin, InvocationMode};

use crate::types::Entrypoint;

const SECONDS_PER_DAY: u64 = 86_400;

/// How long a failed run rests before it is dead-lettered, unless it is configured.
pub const DEAD_LETTER_GRACE_SECONDS: u64 = 86_400;

/// Of a run that a caller starts; runs that undo or repeat another one say so afterwards. `None` for an entrypoint that is not
/// registered.
pub fn of(
    entrypoint: &Entrypoint,
    mode: InvocationMode,
    correlation_id: &str,
    dead_letter_grace_seconds: u64,
) -> Option<EntrypointPin> {
    let traits = &entrypoint.definition.traits;
    let workflow = traits.workflow.as_ref();
    let compensation = workflow.map(|workflow| workflow.compensation.clone()).unwrap_or_default();
    Some(EntrypointPin {
        id: entrypoint.id.clone()?,
        address: entrypoint.entrypoint_id.clone(),
        kind: entrypoint.entrypoint_type()?,
        mode,
        retry: traits.retry.rule(),
        on_failure: compensation.on_failure,
        on_cancel: compensation.on_cancel,
        checkpointing: workflow.map(|workflow| workflow.checkpointing.strategy).unwrap_or_default(),
        max_suspension_seconds: workflow.map(|workflow| workflow.max_suspension_days.saturating_mul(SECONDS_PER_DAY)),
        dead_letter_grace_seconds,
        correlation_id: correlation_id.to_owned(),
        memory_limit_mb: traits.limits.memory_mb(),
        function_digest: None,
        compensates: None,
        replay_of: None,
    })
}
