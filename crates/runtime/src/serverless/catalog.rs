//! The list of entrypoints. A tenant has few: the list is read as a whole, put in order and cut here.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use servo_canon::Digest;
use servo_entrypoint::odata::{ENTRYPOINTS, Literal, OrderBy, OrderKey, Row};
use servo_entrypoint::{Entrypoint, EntrypointListFilter, Page, PageInfo, PageQuery, gts};
use servo_model::{Permission, SecurityContext, Timestamp};
use servo_store::entrypoints::{ARCHIVED, EntrypointQuery};

use super::{Answer, Serverless, store_error};
use crate::entrypoints::entrypoint_of;

/// Entrypoints that are read together; a tenant has few.
pub(super) const ENTRYPOINTS_READ: u32 = 200;

/// Where an entrypoint stands in a list: a value for each key of its order, ids among them, so no two stand at one place. `None` is
/// the end of the list from which the page is counted.
type Stand = Option<Vec<Sealed>>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Sealed {
    Text(String),
    Millis(i64),
}

impl Serverless {
    /// One page. It begins behind an entrypoint, not behind so many: what comes and goes between two pages moves no other.
    pub(super) async fn page_of_entrypoints(
        &self,
        ctx: &SecurityContext,
        filter: &EntrypointListFilter,
    ) -> Answer<Page<Entrypoint>> {
        Self::allow(ctx, Permission::DefinitionsRead)?;
        // Pages may have different sizes; the list is the same.
        let page = PageQuery { cursor: None, limit: None, ..filter.page.clone() };
        let asked = EntrypointListFilter { page, ..filter.clone() };
        let asked = Digest::of(format!("entrypoints|{asked:?}").as_bytes());
        // Before anything is read: a wrong cursor costs nothing.
        let mark = self.open::<Stand>(ctx, asked, &filter.page)?;
        let order = order(filter);
        let all = self.all_entrypoints(ctx, filter).await?;
        let (total, limit) = (all.len(), filter.page.limit() as usize);
        let (start, end) = match mark.map(|mark| (mark.back, mark.at)) {
            None => (0, limit.min(total)),
            Some((back, at)) => {
                let stands = at.map(|values| Stands { order: &order, values });
                let compare =
                    |entrypoint: &Entrypoint| stands.as_ref().map(|stands| order.compare(&Shown(entrypoint), stands));
                if back {
                    let end = all.partition_point(|entrypoint| compare(entrypoint).is_none_or(Ordering::is_lt));
                    (end.saturating_sub(limit), end)
                } else {
                    let start = all.partition_point(|entrypoint| compare(entrypoint).is_some_and(Ordering::is_le));
                    (start, (start + limit).min(total))
                }
            }
        };
        let items: Vec<Entrypoint> = all.into_iter().skip(start).take(end - start).collect();
        // What was asked for may be gone altogether; the way back then begins at the list's end.
        let stand = |entrypoint: Option<&Entrypoint>| entrypoint.map(|entrypoint| seal(&order, entrypoint));
        let cursor = |back: bool, at: Option<&Entrypoint>| self.close(ctx, asked, back, stand(at));
        let page_info = PageInfo {
            next_cursor: (end < total).then(|| cursor(false, items.last())),
            prev_cursor: (start > 0).then(|| cursor(true, items.first())),
            has_more: end < total,
        };
        Ok(Page { items, page_info })
    }

    /// All that the caller sees of what is asked for, in order.
    pub(super) async fn all_entrypoints(
        &self,
        ctx: &SecurityContext,
        filter: &EntrypointListFilter,
    ) -> Answer<Vec<Entrypoint>> {
        if filter.tenant_id.as_deref().is_some_and(|tenant| tenant != ctx.tenant.as_str()) {
            return Ok(Vec::new());
        }
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
        let order = order(filter);
        all.sort_by(|left, right| order.compare(&Shown(left), &Shown(right)));
        Ok(all)
    }
}

fn order(filter: &EntrypointListFilter) -> OrderBy {
    filter.page.order.clone().unwrap_or_else(|| OrderBy::newest(&ENTRYPOINTS))
}

fn seal(order: &OrderBy, entrypoint: &Entrypoint) -> Vec<Sealed> {
    let value = |key: &OrderKey| match Shown(entrypoint).value(key.field.name) {
        Literal::Text(text) => Sealed::Text(text),
        Literal::Time(at) => Sealed::Millis(at.as_millis()),
    };
    order.keys().iter().map(value).collect()
}

/// What stood at the edge of a page, which need not be there any more.
struct Stands<'a> {
    order: &'a OrderBy,
    values: Vec<Sealed>,
}

impl Row for Stands<'_> {
    fn value(&self, field: &str) -> Literal {
        let place = self.order.keys().iter().position(|key| key.field.name == field);
        match place.and_then(|place| self.values.get(place)) {
            Some(Sealed::Text(text)) => Literal::Text(text.clone()),
            Some(Sealed::Millis(at)) => Literal::Time(Timestamp::from_millis(*at)),
            None => Literal::Text(String::new()),
        }
    }
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
