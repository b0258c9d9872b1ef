//! The runtime as programs see it: the published trait, and what the REST API needs beyond it.
//!
//! Whoever implements them authorises every call by its context. Methods for schedules, triggers, tenant policies and usage join
//! the trait together with the parts that do their work.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use servo_model::SecurityContext;

use crate::types::{
    BulkControl, BulkOutcome, Entrypoint, EntrypointId, EntrypointListFilter, EntrypointStatusAction,
    InvocationControlAction, InvocationId, InvocationListFilter, InvocationRecord, InvocationRequest, InvocationResult,
    InvocationSignal, InvocationStatus, InvocationTimelineEvent, Page, PageQuery, RuntimeErrorPayload, SignalResult,
    StatusCount,
};

/// Hears that a start has made its run: its caller may still be waiting for the run's end by then, or be gone.
pub trait Created: Send + Sync {
    fn created(&self, invocation_id: &str);
}

/// The published interface. Entrypoints are named by their address, and travel with it.
#[async_trait]
pub trait ServerlessRuntime: Send + Sync {
    /// Keeps a valid definition as a draft.
    async fn register_entrypoint(
        &self,
        ctx: &SecurityContext,
        entrypoint: Entrypoint,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    /// As `register_entrypoint`, without keeping anything.
    async fn validate_entrypoint(
        &self,
        ctx: &SecurityContext,
        entrypoint: Entrypoint,
    ) -> Result<(), RuntimeErrorPayload>;

    /// All that the caller sees; only a filter with a limit or a cursor gives a page.
    async fn list_entrypoints(
        &self,
        ctx: &SecurityContext,
        filter: EntrypointListFilter,
    ) -> Result<Vec<Entrypoint>, RuntimeErrorPayload>;

    async fn get_entrypoint(
        &self,
        ctx: &SecurityContext,
        entrypoint_id: &EntrypointId,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    /// Replaces a draft by another valid definition.
    async fn update_entrypoint(
        &self,
        ctx: &SecurityContext,
        entrypoint_id: &EntrypointId,
        entrypoint: Entrypoint,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    async fn update_entrypoint_status(
        &self,
        ctx: &SecurityContext,
        entrypoint_id: &EntrypointId,
        action: EntrypointStatusAction,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    /// Removes a draft, archives what can be archived.
    async fn delete_entrypoint(
        &self,
        ctx: &SecurityContext,
        entrypoint_id: &EntrypointId,
    ) -> Result<(), RuntimeErrorPayload>;

    /// Starts a run, or finds the one that the idempotency key names, or only says whether a run could start.
    async fn start_invocation(
        &self,
        ctx: &SecurityContext,
        request: InvocationRequest,
    ) -> Result<InvocationResult, RuntimeErrorPayload>;

    async fn get_invocation(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
    ) -> Result<InvocationRecord, RuntimeErrorPayload>;

    /// A replay answers with the new run, everything else with the same one.
    async fn control_invocation(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
        action: InvocationControlAction,
    ) -> Result<InvocationRecord, RuntimeErrorPayload>;

    /// As `list_entrypoints`. What begins meanwhile need not be among them.
    async fn list_invocations(
        &self,
        ctx: &SecurityContext,
        filter: InvocationListFilter,
    ) -> Result<Vec<InvocationRecord>, RuntimeErrorPayload>;

    async fn get_invocation_timeline(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
    ) -> Result<Vec<InvocationTimelineEvent>, RuntimeErrorPayload>;
}

/// What the REST API needs beyond the published interface: definitions as documents, so that one answer names all their faults;
/// registrations by their opaque id; pages with their cursors; signals, counts and bulk actions.
#[async_trait]
pub trait RestRuntime: ServerlessRuntime {
    async fn register_document(
        &self,
        ctx: &SecurityContext,
        document: Value,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    /// The normalised definition, with its defaults and without an id.
    async fn validate_document(
        &self,
        ctx: &SecurityContext,
        document: Value,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    /// A registration is named by its opaque id (`ep_…`). The platform finds those of every tenant so.
    async fn get_registration(&self, ctx: &SecurityContext, id: &str) -> Result<Entrypoint, RuntimeErrorPayload>;

    async fn update_registration(
        &self,
        ctx: &SecurityContext,
        id: &str,
        document: Value,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    async fn update_registration_status(
        &self,
        ctx: &SecurityContext,
        id: &str,
        action: EntrypointStatusAction,
    ) -> Result<Entrypoint, RuntimeErrorPayload>;

    /// Gives what it was.
    async fn delete_registration(&self, ctx: &SecurityContext, id: &str) -> Result<Entrypoint, RuntimeErrorPayload>;

    async fn page_entrypoints(
        &self,
        ctx: &SecurityContext,
        filter: EntrypointListFilter,
    ) -> Result<Page<Entrypoint>, RuntimeErrorPayload>;

    async fn page_invocations(
        &self,
        ctx: &SecurityContext,
        filter: InvocationListFilter,
    ) -> Result<Page<InvocationRecord>, RuntimeErrorPayload>;

    async fn page_timeline(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
        page: PageQuery,
    ) -> Result<Page<InvocationTimelineEvent>, RuntimeErrorPayload>;

    /// The timeline from its beginning, and on as it grows.
    async fn follow_timeline(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
    ) -> Result<Box<dyn TimelineTail>, RuntimeErrorPayload>;

    /// By status; of conditions, only the entrypoint's may be set.
    async fn count_invocations(
        &self,
        ctx: &SecurityContext,
        filter: InvocationListFilter,
    ) -> Result<Vec<StatusCount>, RuntimeErrorPayload>;

    async fn signal_invocation(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
        signal: InvocationSignal,
    ) -> Result<SignalResult, RuntimeErrorPayload>;

    /// As `start_invocation`, with somebody who hears of the run as soon as it is there.
    async fn start_heard(
        &self,
        ctx: &SecurityContext,
        request: InvocationRequest,
        heard: Arc<dyn Created>,
    ) -> Result<InvocationResult, RuntimeErrorPayload>;

    /// One outcome per run, in the order of the filter. A run that refuses does not stop the others.
    async fn bulk_control(
        &self,
        ctx: &SecurityContext,
        request: BulkControl,
    ) -> Result<Page<BulkOutcome>, RuntimeErrorPayload>;
}

/// A timeline that is followed.
#[async_trait]
pub trait TimelineTail: Send {
    /// What came since the last call, and the status after it. Nothing when the timeline has been told to its end.
    async fn news(&mut self) -> Result<(Vec<InvocationTimelineEvent>, InvocationStatus), RuntimeErrorPayload>;
}
