//! The published types, as part of the program. `every_file_is_embedded` compares the list with the folder.

macro_rules! types {
    ($($id:literal,)*) => {
        pub(super) const TYPES: &[(&str, &str)] = &[
            $(($id, include_str!(concat!("../../../../spec/gts/schemas/", $id, ".json"))),)*
        ];
    };
}

types! {
    "gts.x.core.serverless.compensation_context.v1~",
    "gts.x.core.serverless.entrypoint.v1~",
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~",
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~",
    "gts.x.core.serverless.err.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.bad_request.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.canceled.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.conflict.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.execution.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.forbidden.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.internal.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.not_active.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.not_found.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.quota_exceeded.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.rate_limited.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.resource_limit.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.timeout.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.unauthenticated.v1~",
    "gts.x.core.serverless.err.v1~x.core.serverless.err.validation.v1~",
    "gts.x.core.serverless.implementation.v1~",
    "gts.x.core.serverless.invocation.v1~",
    "gts.x.core.serverless.io_schema.v1~",
    "gts.x.core.serverless.limits.v1~",
    "gts.x.core.serverless.limits.v1~x.core.serverless.adapter.lambda.limits.v1~",
    "gts.x.core.serverless.limits.v1~x.core.serverless.adapter.starlark.limits.v1~",
    "gts.x.core.serverless.limits.v1~x.core.serverless.adapter.temporal.limits.v1~",
    "gts.x.core.serverless.owner_ref.v1~",
    "gts.x.core.serverless.rate_limit.v1~",
    "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
    "gts.x.core.serverless.retry_policy.v1~",
    "gts.x.core.serverless.schedule.v1~",
    "gts.x.core.serverless.status.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.canceled.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.compensated.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.compensating.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.dead_lettered.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.failed.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.queued.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.running.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.succeeded.v1~",
    "gts.x.core.serverless.status.v1~x.core.serverless.status.suspended.v1~",
    "gts.x.core.serverless.tenant_policy.v1~",
    "gts.x.core.serverless.timeline_event.v1~",
    "gts.x.core.serverless.trigger.v1~",
    "gts.x.core.serverless.workflow_traits.v1~",
}
