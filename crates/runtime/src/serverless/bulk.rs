//! One action on many runs. A run that refuses does not stop the others, and a rate keeps a redrive from flooding.

use std::time::Duration;

use servo_entrypoint::{
    BULK_ITEMS_MAX, BulkControl, BulkOutcome, InvocationControlAction, InvocationStatus, Page, ValidationError,
    ValidationIssue,
};
use servo_model::SecurityContext;

use super::control::{Redrive, permission};
use super::{Answer, Serverless};

impl Serverless {
    pub(super) async fn bulk(&self, ctx: &SecurityContext, request: BulkControl) -> Answer<Page<BulkOutcome>> {
        // Refused as a whole: otherwise it would be a success that did nothing.
        Self::allow(ctx, permission(&request.action))?;
        if !(1..=BULK_ITEMS_MAX).contains(&request.max_items) {
            let message = format!("one call takes 1 to {BULK_ITEMS_MAX} runs");
            let issue = ValidationIssue::new("limit_exceeded", "$.max_items", message);
            return Err(ValidationError::new(vec![issue]).into());
        }
        let mut filter = request.filter.clone();
        filter.page.limit = Some(request.max_items);
        // A bulk retry that asks for dead letters takes them back; one that only does not exclude them leaves them.
        let asked = InvocationStatus::DeadLettered;
        let dead = filter.status == Some(asked)
            || filter.page.filter.as_ref().is_some_and(|filter| filter.asks_for("status", asked.as_str()));
        let redrive = if dead && request.action == InvocationControlAction::Retry { Redrive::Yes } else { Redrive::No };
        let (rows, page_info) = self.rows(ctx, &filter, request.max_items).await?;
        let pause = request.per_second.filter(|rate| *rate > 0).map(|rate| Duration::from_secs(1) / rate);
        let mut items = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let invocation_id = row.run_id.to_string();
            if request.dry_run {
                let checked = self.check_control(ctx, &invocation_id, &request.action, redrive).await;
                items.push(BulkOutcome { invocation_id, error: checked.err() });
                continue;
            }
            if let Some(pause) = pause.filter(|_| index > 0) {
                self.engine().clock().sleep(pause).await;
            }
            let outcome = self.control(ctx, &invocation_id, request.action.clone(), redrive).await;
            items.push(BulkOutcome { invocation_id, error: outcome.err() });
        }
        Ok(Page { items, page_info })
    }
}
