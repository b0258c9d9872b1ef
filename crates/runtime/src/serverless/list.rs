//! Lists, cut into pages by cursors that are sealed: bound to the tenant and to what was asked.

use serde::{Deserialize, Serialize};
use servo_canon::Digest;
use servo_entrypoint::odata::{Compare, Direction, Filter, Literal, OrderBy, Row};
use servo_entrypoint::{
    Entrypoint, EntrypointListFilter, InvocationListFilter, InvocationRecord, Page, PageInfo, PageQuery, StatusCount,
    errors, gts,
};
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{Permission, RunId, SecurityContext, TenantId, Timestamp};
use servo_store::RunRow;
use servo_store::entrypoints::{ARCHIVED, EntrypointQuery};
use servo_store::runs::{CompareOp, RunField, RunFilter, RunOrder, RunQuery, RunValue};

use super::visible::Hidden;
use super::{Answer, Serverless, engine_error, store_error};
use crate::engine::Error;
use crate::entrypoints::entrypoint_of;
use crate::executions::Purpose;

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    tenant: TenantId,
    /// The digest of filter and order.
    asked: Digest,
    /// The page ends before this place, instead of beginning behind it.
    back: bool,
    at: String,
}

/// Entrypoints that are read together; a tenant has few.
pub(super) const ENTRYPOINTS_READ: u32 = 200;

impl Serverless {
    fn open(&self, ctx: &SecurityContext, asked: Digest, page: &PageQuery) -> Answer<Option<Mark>> {
        let Some(text) = page.cursor.as_deref() else { return Ok(None) };
        let mut sealed = text.replace('-', "+").replace('_', "/");
        sealed.extend(std::iter::repeat_n('=', (4 - sealed.len() % 4) % 4));
        let mark: Option<Mark> = self.executions.seal().open(Purpose::Page, &sealed);
        let mark = mark.filter(|mark| mark.tenant == ctx.tenant && mark.asked == asked);
        let wrong = || errors::bad_request("the cursor is not one of this list; begin again without it");
        Ok(Some(mark.ok_or_else(wrong)?))
    }

    fn close(&self, ctx: &SecurityContext, asked: Digest, back: bool, at: &str) -> String {
        let mark = Mark { tenant: ctx.tenant.clone(), asked, back, at: at.to_owned() };
        let sealed = self.executions.seal().close(Purpose::Page, self.engine().ids().nonce(), &mark);
        // A cursor goes into a query, where `+` would be a space.
        sealed.trim_end_matches('=').replace('+', "-").replace('/', "_")
    }

    /// The digest of a list that is counted from its beginning, and where a page of it begins.
    pub(super) fn place(&self, ctx: &SecurityContext, what: &str, page: &PageQuery) -> Answer<(Digest, usize)> {
        let asked = Digest::of(format!("{what}|{:?}|{:?}", page.filter, page.order).as_bytes());
        let wrong = |_| errors::bad_request("the cursor is not one of this list; begin again without it");
        let start = match self.open(ctx, asked, page)? {
            None => 0,
            Some(mark) => {
                let at: usize = mark.at.parse().map_err(wrong)?;
                if mark.back { at.saturating_sub(page.limit() as usize) } else { at }
            }
        };
        Ok((asked, start))
    }

    /// A page of what is at hand as a whole, from its place on.
    pub(super) fn page_of<T>(
        &self,
        ctx: &SecurityContext,
        (asked, start): (Digest, usize),
        page: &PageQuery,
        all: Vec<T>,
    ) -> Page<T> {
        let limit = page.limit() as usize;
        let total = all.len();
        let end = (start + limit).min(total);
        let items: Vec<T> = all.into_iter().skip(start).take(limit).collect();
        let has_more = end < total;
        Page {
            page_info: PageInfo {
                next_cursor: has_more.then(|| self.close(ctx, asked, false, &end.to_string())),
                prev_cursor: (start > 0).then(|| self.close(ctx, asked, true, &start.to_string())),
                has_more,
            },
            items,
        }
    }

    pub(super) async fn page_of_entrypoints(
        &self,
        ctx: &SecurityContext,
        filter: &EntrypointListFilter,
    ) -> Answer<Page<Entrypoint>> {
        Self::allow(ctx, Permission::DefinitionsRead)?;
        if filter.tenant_id.as_deref().is_some_and(|tenant| tenant != ctx.tenant.as_str()) {
            let place = self.place(ctx, "none", &filter.page)?;
            return Ok(self.page_of(ctx, place, &filter.page, Vec::new()));
        }
        let what = format!(
            "entrypoints|{:?}|{:?}|{:?}|{:?}|{:?}",
            filter.entrypoint_id_prefix, filter.status, filter.owner_type, filter.runtime, filter.tags
        );
        // Before anything is read: a wrong cursor costs nothing.
        let place = self.place(ctx, &what, &filter.page)?;
        let asks_archived = filter.page.filter.as_ref().is_some_and(|filter| filter.asks_for("status", ARCHIVED));
        let mut query = EntrypointQuery {
            statuses: filter.status.iter().map(|status| status.as_str().to_owned()).collect(),
            exclude_archived: filter.status.is_none() && !asks_archived,
            owner_type: filter.owner_type.map(|owner| owner.as_str().to_owned()),
            // What is shared with the caller is among the others' own.
            subject: (!ctx.may(Permission::Platform) && !self.platform.access.shares()).then(|| ctx.subject.clone()),
            adapter: filter.runtime.clone(),
            tags: filter.tags.clone(),
            limit: ENTRYPOINTS_READ,
            ..EntrypointQuery::default()
        };
        if let Some(prefix) = &filter.entrypoint_id_prefix {
            query.address_prefix = Some(prefix.strip_suffix('*').unwrap_or(prefix).to_owned());
        }
        let mut all = Vec::new();
        loop {
            let rows = self.engine().store().list_entrypoints(&Self::scope(ctx), &query).await.map_err(store_error)?;
            let Some(last) = rows.last() else { break };
            query.after = Some(query.order.key(last));
            for row in rows {
                let Some(row) = self.shown(ctx, row).await? else { continue };
                let entrypoint = entrypoint_of(&row).map_err(store_error)?;
                let prefix = filter.entrypoint_id_prefix.as_deref();
                if prefix.is_none_or(|prefix| gts::matches_prefix(&row.address, prefix))
                    && filter.page.filter.as_ref().is_none_or(|filter| filter.matches(&Shown(&entrypoint)))
                {
                    all.push(entrypoint);
                }
            }
        }
        let newest = OrderBy::newest(&servo_entrypoint::odata::ENTRYPOINTS);
        let order = filter.page.order.as_ref().unwrap_or(&newest);
        all.sort_by(|left, right| order.compare(&Shown(left), &Shown(right)));
        Ok(self.page_of(ctx, place, &filter.page, all))
    }

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
        let Sorting { by_status, ascending } = sorting(filter.page.order.as_ref())?;
        // Pages may have different sizes; the list is the same.
        let page = PageQuery { cursor: None, limit: None, ..filter.page.clone() };
        let asked = Digest::of(format!("{:?}", InvocationListFilter { page, ..filter.clone() }).as_bytes());
        let mark = self.open(ctx, asked, &filter.page)?;
        let back = mark.as_ref().is_some_and(|mark| mark.back);
        let (status, after) = match &mark {
            None => (None, None),
            Some(mark) => read_place(&mark.at).ok_or_else(|| errors::bad_request("the cursor cannot be read"))?,
        };
        let order = if by_status { RunOrder::Visible { after: status } } else { RunOrder::RunId };
        let Some(query) = self.query(ctx, filter).await? else { return Ok(none) };
        // Whoever names an entrypoint has been checked to see it.
        let hidden = if query.plan_ids.is_empty() { self.sight.hidden(ctx).await } else { Ok(Hidden::default()) };
        let hidden = hidden.map_err(store_error)?;
        let query = RunQuery { filter: hidden.narrow(query.filter), ..query };
        let query = RunQuery { order, oldest_first: ascending != back, after, limit: limit + 1, ..query };
        let mut rows = self.engine().store().list_runs(&Self::scope(ctx), &query).await.map_err(store_error)?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        if back {
            rows.reverse();
        }
        let place = |row: &RunRow| format!("{} {}", row.visible.as_str(), row.run_id);
        let (first, last) = (rows.first().map(place), rows.last().map(place));
        // Whoever came from a page has one on that side.
        let (before, behind) = if back { (more, true) } else { (mark.is_some(), more) };
        let cursor = |at: Option<String>, back: bool| at.map(|at| self.close(ctx, asked, back, &at));
        let page_info = PageInfo {
            next_cursor: cursor(last, false).filter(|_| behind),
            prev_cursor: cursor(first, true).filter(|_| before),
            has_more: behind,
        };
        rows.retain(|row| !hidden.holds(&row.plan_id));
        Ok((rows, page_info))
    }

    /// `None` when nothing can match.
    async fn query(&self, ctx: &SecurityContext, filter: &InvocationListFilter) -> Answer<Option<RunQuery>> {
        let plan_ids = match &filter.entrypoint_id {
            None => Vec::new(),
            Some(address) => match self.registration(ctx, address).await? {
                Some(id) => vec![id],
                None => return Ok(None),
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

    /// The entrypoint of an address, if the caller sees it.
    async fn registration(&self, ctx: &SecurityContext, address: &str) -> Answer<Option<String>> {
        let found = self.engine().store().find_entrypoint(&ctx.tenant, address).await.map_err(store_error)?;
        let Some(row) = found else { return Ok(None) };
        Ok(self.shown(ctx, row).await?.map(|row| row.id))
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
            ("entrypoint_id", Literal::Text(address)) if equality => {
                // An address that nobody has registered is no run's.
                let id = self.registration(ctx, address).await?.unwrap_or_default();
                (RunField::PlanId, RunValue::Text(id))
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
        let registration = match &filter.entrypoint_id {
            None => None,
            Some(address) => match self.registration(ctx, address).await? {
                Some(id) => Some(id),
                None => return Ok(Vec::new()),
            },
        };
        let counts = self.engine().store().count_by_visible(&ctx.tenant, registration.as_deref()).await;
        let counts = counts.map_err(store_error)?;
        let counts = counts.into_iter().map(|(status, count)| StatusCount { status, count }).collect();
        if registration.is_some() { Ok(counts) } else { self.without_hidden(ctx, counts).await }
    }
}

/// A run's place in a list: its status, which counts where that is the order, and its id.
fn read_place(text: &str) -> Option<(Option<InvocationStatus>, Option<RunId>)> {
    let (status, run_id) = text.split_once(' ')?;
    Some((Some(InvocationStatus::parse(status)?), Some(RunId::parse(run_id).ok()?)))
}

/// What an index can serve.
struct Sorting {
    /// Otherwise by id, which is by time.
    by_status: bool,
    ascending: bool,
}

fn sorting(order: Option<&OrderBy>) -> Answer<Sorting> {
    let by_id = |name: &str| matches!(name, "created_at" | "invocation_id" | "id");
    let keys = order.map(OrderBy::keys).unwrap_or_default();
    let Some(first) = keys.first() else { return Ok(Sorting { by_status: false, ascending: false }) };
    let by_status = first.field.name == "status";
    // Ids break ties, in the direction of the whole.
    let rest = keys.iter().skip(usize::from(by_status));
    let is_served = if by_status {
        rest.into_iter().all(|key| by_id(key.field.name) && key.direction == first.direction)
    } else {
        by_id(first.field.name)
    };
    if is_served {
        return Ok(Sorting { by_status, ascending: first.direction == Direction::Asc });
    }
    // Each field has an order of its own; this is about their combination.
    Err(errors::bad_request(
        "$orderby: behind `status` comes `created_at` or `invocation_id` in the same direction, such as `status asc,created_at asc`",
    ))
}

/// An entrypoint as filters see it.
struct Shown<'a>(&'a Entrypoint);

impl Row for Shown<'_> {
    fn value(&self, field: &str) -> Literal {
        let definition = &self.0.definition;
        let text = |text: &str| Literal::Text(text.to_owned());
        let time = |at: Option<Timestamp>| Literal::Time(at.unwrap_or_else(|| Timestamp::from_millis(0)));
        match field {
            "id" => text(self.0.id.as_deref().unwrap_or_default()),
            "entrypoint_id" => text(&self.0.entrypoint_id),
            "tenant_id" => text(&definition.tenant_id),
            "status" => text(definition.status.as_str()),
            "owner_type" => text(definition.owner.owner_type.as_str()),
            "runtime" => text(&definition.implementation.adapter),
            "version" => text(&definition.version),
            "title" => text(&definition.title),
            "created_at" => time(definition.created_at),
            "updated_at" => time(definition.updated_at),
            _ => text(""),
        }
    }
}
