//! The list of invocations, and how many there are.

use std::collections::HashSet;

use servo_canon::Digest;
use servo_entrypoint::odata::{Compare, Filter, INVOCATIONS, Literal};
use servo_entrypoint::{
    InvocationListFilter, InvocationRecord, LIMIT_MAX, Page, PageInfo, PageQuery, StatusCount, errors,
};
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{Permission, SecurityContext};
use servo_store::RunRow;
use servo_store::runs::{CompareOp, RunField, RunFilter, RunQuery, RunValue};

use super::sorted::{Place, Sorting};
use super::visible::Hidden;
use super::{Answer, Serverless, engine_error, store_error};
use crate::engine::Error;

impl Serverless {
    pub(super) async fn page_of_invocations(
        &self,
        ctx: &SecurityContext,
        filter: &InvocationListFilter,
    ) -> Answer<Page<InvocationRecord>> {
        Self::allow(ctx, Permission::RunsRead)?;
        let (rows, page_info) = self.rows(ctx, filter, filter.page.limit()).await?;
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            match self.engine().view(&Self::scope(ctx), &row.run_id, super::record).await {
                Ok(Some(record)) => items.push(record),
                // Retired between the two reads, or set aside.
                Ok(None) | Err(Error::Store(servo_store::Error::NotFound) | Error::Quarantined(_)) => {}
                Err(error) => return Err(engine_error(error)),
            }
        }
        Ok(Page { items, page_info })
    }

    /// All that the caller sees of what is asked for. What begins meanwhile is left out, so that this comes to an end.
    pub(super) async fn all_invocations(
        &self,
        ctx: &SecurityContext,
        mut filter: InvocationListFilter,
    ) -> Answer<Vec<InvocationRecord>> {
        Self::allow(ctx, Permission::RunsRead)?;
        // Of all, also of those that the caller does not see.
        let newest = match self.query(ctx, &InvocationListFilter::default()).await? {
            Some(query) => self.sorted_rows(ctx, &Sorting::of(None), query, None, 1).await?,
            None => Vec::new(),
        };
        if let (Some(newest), Some(field)) = (newest.first(), INVOCATIONS.field(INVOCATIONS.id)) {
            let value = Literal::Text(newest.run_id.to_string());
            let known = Filter::Compare { field, compare: Compare::Le, value };
            filter.page.filter = Some(match filter.page.filter.take() {
                None => known,
                Some(asked) => Filter::And(vec![asked, known]),
            });
        }
        filter.page.limit = Some(LIMIT_MAX);
        let (mut all, mut met) = (Vec::new(), HashSet::new());
        loop {
            let page = self.page_of_invocations(ctx, &filter).await?;
            // A status that changes between two pages may bring a run twice.
            all.extend(page.items.into_iter().filter(|record| met.insert(record.invocation_id.clone())));
            filter.page.cursor = page.page_info.next_cursor;
            if filter.page.cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// The rows of one page, and how to go on.
    pub(super) async fn rows(
        &self,
        ctx: &SecurityContext,
        filter: &InvocationListFilter,
        limit: u32,
    ) -> Answer<(Vec<RunRow>, PageInfo)> {
        let none = (Vec::new(), PageInfo::default());
        if filter.tenant_id.as_deref().is_some_and(|tenant| tenant != ctx.tenant.as_str()) {
            return Ok(none);
        }
        // Pages may have different sizes; the list is the same.
        let page = PageQuery { cursor: None, limit: None, ..filter.page.clone() };
        let asked = Digest::of(format!("{:?}", InvocationListFilter { page, ..filter.clone() }).as_bytes());
        let mark = self.open::<String>(ctx, asked, &filter.page)?;
        let back = mark.as_ref().is_some_and(|mark| mark.back);
        let unread = || errors::bad_request("the cursor cannot be read");
        // Without a place it begins at an end of the list: what stood where the page before it ended is gone.
        let place = mark.as_ref().filter(|mark| !mark.at.is_empty());
        let place = place.map(|mark| Place::parse(&mark.at).ok_or_else(unread)).transpose()?;
        let sorting = Sorting::of(filter.page.order.as_ref());
        let sorting = if back { sorting.reversed() } else { sorting };
        let Some(query) = self.query(ctx, filter).await? else { return Ok(none) };
        // Whoever names an entrypoint has been checked to see it.
        let hidden = if query.plan_ids.is_empty() { self.sight.hidden(ctx).await } else { Ok(Hidden::default()) };
        let hidden = hidden.map_err(store_error)?;
        let query = RunQuery { filter: hidden.narrow(query.filter), ..query };
        let mut rows = self.sorted_rows(ctx, &sorting, query, place.as_ref(), limit as usize + 1).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        if back {
            rows.reverse();
        }
        // Whoever came from a page has one on that side.
        let (before, behind) = if back { (more, place.is_some()) } else { (place.is_some(), more) };
        let cursor = |row: Option<&RunRow>, back: bool| {
            let at = row.map(|row| Place::of(row).to_string()).unwrap_or_default();
            self.close(ctx, asked, back, at)
        };
        let page_info = PageInfo {
            next_cursor: behind.then(|| cursor(rows.last(), false)),
            prev_cursor: before.then(|| cursor(rows.first(), true)),
            has_more: behind,
        };
        let mut met = HashSet::new();
        rows.retain(|row| !hidden.holds(&row.plan_id) && met.insert(row.run_id.clone()));
        Ok((rows, page_info))
    }

    /// `None` when nothing can match.
    async fn query(&self, ctx: &SecurityContext, filter: &InvocationListFilter) -> Answer<Option<RunQuery>> {
        let plan_ids = match &filter.entrypoint_id {
            None => Vec::new(),
            Some(text) => match self.registrations(ctx, text).await? {
                ids if ids.is_empty() => return Ok(None),
                ids => ids,
            },
        };
        let general = match &filter.page.filter {
            None => None,
            Some(filter) => Some(self.translate(ctx, filter).await?),
        };
        Ok(Some(RunQuery {
            invocations: Some(true),
            visible: filter.status.into_iter().collect(),
            mode: filter.mode,
            correlation_id: filter.correlation_id.clone(),
            plan_ids,
            filter: general,
            ..RunQuery::default()
        }))
    }

    /// The condition in the words of rows: an address is the registration behind it, and the tenant is the caller's.
    fn translate<'a>(
        &'a self,
        ctx: &'a SecurityContext,
        filter: &'a Filter,
    ) -> std::pin::Pin<Box<dyn Future<Output = Answer<RunFilter>> + Send + 'a>> {
        Box::pin(async move {
            Ok(match filter {
                Filter::And(parts) => RunFilter::And(self.translate_all(ctx, parts).await?),
                Filter::Or(parts) => RunFilter::Or(self.translate_all(ctx, parts).await?),
                Filter::Not(inner) => RunFilter::Not(Box::new(self.translate(ctx, inner).await?)),
                Filter::Compare { field, compare, value } => self.compare(ctx, field.name, *compare, value).await?,
                Filter::In { field, values } => {
                    let mut any = Vec::with_capacity(values.len());
                    for value in values {
                        any.push(self.compare(ctx, field.name, Compare::Eq, value).await?);
                    }
                    RunFilter::Or(any)
                }
            })
        })
    }

    async fn translate_all(&self, ctx: &SecurityContext, parts: &[Filter]) -> Answer<Vec<RunFilter>> {
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            all.push(self.translate(ctx, part).await?);
        }
        Ok(all)
    }

    async fn compare(
        &self,
        ctx: &SecurityContext,
        field: &str,
        compare: Compare,
        value: &Literal,
    ) -> Answer<RunFilter> {
        let unknown = || errors::bad_request(format!("invocations are not filtered by `{field}` in this way"));
        let op = match compare {
            Compare::Eq => CompareOp::Eq,
            Compare::Ne => CompareOp::Ne,
            Compare::Lt => CompareOp::Lt,
            Compare::Le => CompareOp::Le,
            Compare::Gt => CompareOp::Gt,
            Compare::Ge => CompareOp::Ge,
        };
        let equality = matches!(compare, Compare::Eq | Compare::Ne);
        let (field, value) = match (field, value) {
            ("invocation_id" | "id", Literal::Text(text)) => (RunField::RunId, RunValue::Text(text.clone())),
            ("correlation_id", Literal::Text(text)) => (RunField::CorrelationId, RunValue::Text(text.clone())),
            ("created_at", Literal::Time(at)) => (RunField::CreatedAt, RunValue::Time(*at)),
            ("status", Literal::Text(text)) => {
                let status = InvocationStatus::parse(text).ok_or_else(unknown)?;
                (RunField::Visible, RunValue::Text(status.as_str().to_owned()))
            }
            ("mode", Literal::Text(text)) => {
                let mode = InvocationMode::parse(text).ok_or_else(unknown)?;
                (RunField::Mode, RunValue::Text(mode.as_str().to_owned()))
            }
            ("entrypoint_id", Literal::Text(text)) if equality => {
                let values: Vec<_> = self.registrations(ctx, text).await?.into_iter().map(RunValue::Text).collect();
                let of_these = match values.is_empty() {
                    true => RunFilter::Or(Vec::new()),
                    false => RunFilter::In { field: RunField::PlanId, values },
                };
                return Ok(if compare == Compare::Eq { of_these } else { RunFilter::Not(Box::new(of_these)) });
            }
            ("tenant_id", Literal::Text(tenant)) if equality => {
                let own = (tenant == ctx.tenant.as_str()) == (compare == Compare::Eq);
                return Ok(if own { RunFilter::And(Vec::new()) } else { RunFilter::Or(Vec::new()) });
            }
            _ => return Err(unknown()),
        };
        Ok(RunFilter::Compare { field, op, value })
    }

    /// By status, of all or of one entrypoint: counters that the store keeps. Other conditions are refused.
    pub(super) async fn counts(
        &self,
        ctx: &SecurityContext,
        filter: &InvocationListFilter,
    ) -> Answer<Vec<StatusCount>> {
        Self::allow(ctx, Permission::RunsRead)?;
        let plain = InvocationListFilter {
            tenant_id: filter.tenant_id.clone(),
            entrypoint_id: filter.entrypoint_id.clone(),
            ..InvocationListFilter::default()
        };
        if *filter != plain {
            return Err(errors::bad_request("counts are by entrypoint alone; leave the other conditions out"));
        }
        if filter.tenant_id.as_deref().is_some_and(|tenant| tenant != ctx.tenant.as_str()) {
            return Ok(Vec::new());
        }
        let count = async |id: Option<&str>| -> Answer<Vec<StatusCount>> {
            let counts = self.engine().store().count_by_visible(&ctx.tenant, id).await.map_err(store_error)?;
            Ok(counts.into_iter().map(|(status, count)| StatusCount { status, count }).collect())
        };
        let Some(text) = &filter.entrypoint_id else { return self.without_hidden(ctx, count(None).await?).await };
        let mut all: Vec<StatusCount> = Vec::new();
        for id in self.registrations(ctx, text).await? {
            for own in count(Some(&id)).await? {
                match all.iter_mut().find(|total| total.status == own.status) {
                    Some(total) => total.count += own.count,
                    None => all.push(own),
                }
            }
        }
        Ok(all)
    }
}
