//! The published traits, each method one line to where it is done.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use servo_entrypoint::{
    BulkControl, BulkOutcome, Created, Entrypoint, EntrypointId, EntrypointListFilter, EntrypointStatusAction,
    InvocationControlAction, InvocationId, InvocationListFilter, InvocationRecord, InvocationRequest, InvocationResult,
    InvocationSignal, InvocationTimelineEvent, Page, PageQuery, RestRuntime, RuntimeErrorPayload, ServerlessRuntime,
    SignalResult, StatusCount, TimelineTail,
};
use servo_model::{Permission, RunId, SecurityContext};

use super::control::Redrive;
use super::registry::Named;
use super::timeline::Tail;
use super::{Answer, Serverless, internal, no_invocation};

fn document(entrypoint: &Entrypoint) -> Answer<Value> {
    serde_json::to_value(entrypoint).map_err(|error| internal(&error))
}

#[async_trait]
impl ServerlessRuntime for Serverless {
    async fn register_entrypoint(&self, ctx: &SecurityContext, entrypoint: Entrypoint) -> Answer<Entrypoint> {
        self.register(ctx, document(&entrypoint)?).await
    }

    async fn validate_entrypoint(&self, ctx: &SecurityContext, entrypoint: Entrypoint) -> Answer<()> {
        self.validate(ctx, document(&entrypoint)?, None).await.map(|_| ())
    }

    async fn list_entrypoints(
        &self,
        ctx: &SecurityContext,
        filter: EntrypointListFilter,
    ) -> Result<Vec<Entrypoint>, RuntimeErrorPayload> {
        if filter.page.is_cut() {
            return Ok(self.page_of_entrypoints(ctx, &filter).await?.items);
        }
        Self::allow(ctx, Permission::DefinitionsRead)?;
        self.all_entrypoints(ctx, &filter).await
    }

    async fn get_entrypoint(&self, ctx: &SecurityContext, entrypoint_id: &EntrypointId) -> Answer<Entrypoint> {
        self.read_entrypoint(ctx, Named::Address(entrypoint_id)).await
    }

    async fn update_entrypoint(
        &self,
        ctx: &SecurityContext,
        entrypoint_id: &EntrypointId,
        entrypoint: Entrypoint,
    ) -> Answer<Entrypoint> {
        self.update(ctx, Named::Address(entrypoint_id), document(&entrypoint)?).await
    }

    async fn update_entrypoint_status(
        &self,
        ctx: &SecurityContext,
        entrypoint_id: &EntrypointId,
        action: EntrypointStatusAction,
    ) -> Answer<Entrypoint> {
        self.set_status(ctx, Named::Address(entrypoint_id), action).await
    }

    async fn delete_entrypoint(&self, ctx: &SecurityContext, entrypoint_id: &EntrypointId) -> Answer<()> {
        self.remove(ctx, Named::Address(entrypoint_id)).await.map(|_| ())
    }

    async fn start_invocation(&self, ctx: &SecurityContext, request: InvocationRequest) -> Answer<InvocationResult> {
        self.start(ctx, request, None).await
    }

    async fn get_invocation(&self, ctx: &SecurityContext, invocation_id: &InvocationId) -> Answer<InvocationRecord> {
        Self::allow(ctx, Permission::RunsRead)?;
        let run_id = RunId::parse(invocation_id).map_err(|_| no_invocation())?;
        self.read_seen(ctx, &run_id).await
    }

    async fn control_invocation(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
        action: InvocationControlAction,
    ) -> Answer<InvocationRecord> {
        self.control(ctx, invocation_id, action, Redrive::No).await
    }

    async fn list_invocations(
        &self,
        ctx: &SecurityContext,
        filter: InvocationListFilter,
    ) -> Result<Vec<InvocationRecord>, RuntimeErrorPayload> {
        if filter.page.is_cut() {
            return Ok(self.page_of_invocations(ctx, &filter).await?.items);
        }
        self.all_invocations(ctx, filter).await
    }

    async fn get_invocation_timeline(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
    ) -> Result<Vec<InvocationTimelineEvent>, RuntimeErrorPayload> {
        Self::allow(ctx, Permission::RunsRead)?;
        let run_id = RunId::parse(invocation_id).map_err(|_| no_invocation())?;
        self.check_run(ctx, &run_id).await?;
        self.timeline(&Self::scope(ctx), &run_id, usize::MAX).await
    }
}

#[async_trait]
impl RestRuntime for Serverless {
    async fn register_document(&self, ctx: &SecurityContext, document: Value) -> Answer<Entrypoint> {
        self.register(ctx, document).await
    }

    async fn validate_document(&self, ctx: &SecurityContext, document: Value) -> Answer<Entrypoint> {
        Ok(self.validate(ctx, document, None).await?.entrypoint)
    }

    async fn get_registration(&self, ctx: &SecurityContext, id: &str) -> Answer<Entrypoint> {
        self.read_entrypoint(ctx, Named::Id(id)).await
    }

    async fn update_registration(&self, ctx: &SecurityContext, id: &str, document: Value) -> Answer<Entrypoint> {
        self.update(ctx, Named::Id(id), document).await
    }

    async fn update_registration_status(
        &self,
        ctx: &SecurityContext,
        id: &str,
        action: EntrypointStatusAction,
    ) -> Answer<Entrypoint> {
        self.set_status(ctx, Named::Id(id), action).await
    }

    async fn delete_registration(&self, ctx: &SecurityContext, id: &str) -> Answer<Entrypoint> {
        self.remove(ctx, Named::Id(id)).await
    }

    async fn page_entrypoints(&self, ctx: &SecurityContext, filter: EntrypointListFilter) -> Answer<Page<Entrypoint>> {
        self.page_of_entrypoints(ctx, &filter).await
    }

    async fn page_invocations(
        &self,
        ctx: &SecurityContext,
        filter: InvocationListFilter,
    ) -> Answer<Page<InvocationRecord>> {
        self.page_of_invocations(ctx, &filter).await
    }

    async fn page_timeline(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
        page: PageQuery,
    ) -> Answer<Page<InvocationTimelineEvent>> {
        Self::allow(ctx, Permission::RunsRead)?;
        let run_id = RunId::parse(invocation_id).map_err(|_| no_invocation())?;
        self.check_run(ctx, &run_id).await?;
        let what = format!("timeline|{invocation_id}");
        let place = self.place(ctx, &what, &page)?;
        // One more than the page says whether there is another.
        let most = place.1.saturating_add(page.limit() as usize).saturating_add(1);
        let told = self.timeline(&Self::scope(ctx), &run_id, most).await?;
        Ok(self.page_of(ctx, place, &page, told))
    }

    async fn follow_timeline(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
    ) -> Answer<Box<dyn TimelineTail>> {
        Self::allow(ctx, Permission::RunsRead)?;
        let run_id = RunId::parse(invocation_id).map_err(|_| no_invocation())?;
        self.check_run(ctx, &run_id).await?;
        Ok(Box::new(Tail::new(self, &Self::scope(ctx), &run_id)))
    }

    async fn count_invocations(
        &self,
        ctx: &SecurityContext,
        filter: InvocationListFilter,
    ) -> Result<Vec<StatusCount>, RuntimeErrorPayload> {
        self.counts(ctx, &filter).await
    }

    async fn signal_invocation(
        &self,
        ctx: &SecurityContext,
        invocation_id: &InvocationId,
        signal: InvocationSignal,
    ) -> Answer<SignalResult> {
        self.message(ctx, invocation_id, signal).await
    }

    async fn start_heard(
        &self,
        ctx: &SecurityContext,
        request: InvocationRequest,
        heard: Arc<dyn Created>,
    ) -> Answer<InvocationResult> {
        self.start(ctx, request, Some(heard)).await
    }

    async fn bulk_control(&self, ctx: &SecurityContext, request: BulkControl) -> Answer<Page<BulkOutcome>> {
        self.bulk(ctx, request).await
    }
}
