//! The API's types as Rust sees them. Their JSON is what the published schemas say (`spec/gts`), not what the fields are called.

mod compensation;
mod entrypoint;
mod float;
mod implementation;
mod invocation;
mod list;
mod schedule;
mod tenant;
mod timeline;
mod traits;
mod trigger;
mod usage;
mod validation;

pub use compensation::{CompensationContext, FailedStepError, InvocationMetadata};
pub use entrypoint::{
    DefinitionStatus, Entrypoint, EntrypointDefinition, EntrypointSchema, EntrypointStatusAction, OwnerRef, OwnerType,
};
pub use implementation::{EntrypointImplementation, ImplementationKind, ImplementationPayload};
pub use invocation::{
    BlockedBy, Cause, CompensationRecord, InvocationControlAction, InvocationMetrics, InvocationObservability,
    InvocationRecord, InvocationRequest, InvocationResult, InvocationSignal, InvocationTimestamps, OperationRecord,
    SignalOutcome, SignalResult,
};
pub use list::{
    BULK_ITEMS_MAX, BulkControl, BulkOutcome, EntrypointListFilter, InvocationListFilter, LIMIT_DEFAULT, LIMIT_MAX,
    Page, PageInfo, PageQuery, StatusCount, list_limit,
};
pub use schedule::{MissedSchedulePolicy, Schedule, ScheduleExpression, ScheduleStatus};
pub use tenant::{
    TenantDefaults, TenantIdempotency, TenantPolicies, TenantQuotas, TenantRetention, TenantRuntimePolicy,
};
pub use timeline::{InvocationTimelineEvent, TimelineEventType};
pub use traits::{
    CheckpointingConfig, CompensationConfig, EntrypointLimits, EntrypointTraits, RateLimit, ResponseCachingPolicy,
    RetryPolicy, TokenBucketRateLimit, WorkflowTraits,
};
pub use trigger::{DeadLetterQueueConfig, Trigger, TriggerStatus};
pub use usage::{TenantUsage, UsageGranularity, UsageHistoryFilter, UsageMetrics, UsageUtilization};
pub use validation::{ValidationError, ValidationIssue, ValidationLocation};

pub use servo_model::invocation::{
    Checkpointing as CheckpointingStrategy, CompensationTrigger, EntrypointKind as EntrypointType,
    ErrorCategory as RuntimeErrorCategory, Failure as RuntimeErrorPayload, InvocationMode, InvocationStatus,
};

pub type GtsId = String;
/// The GTS address of an entrypoint, not the opaque id of its registration.
pub type EntrypointId = String;
pub type InvocationId = String;
pub type ScheduleId = String;
pub type TriggerId = String;
pub type TenantId = String;
