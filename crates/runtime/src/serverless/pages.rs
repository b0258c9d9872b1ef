//! Pages, cut by cursors that are sealed: bound to the tenant and to what was asked.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use servo_canon::Digest;
use servo_entrypoint::{Page, PageInfo, PageQuery, errors};
use servo_model::{SecurityContext, TenantId};

use super::{Answer, Serverless};
use crate::executions::Purpose;

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark<P> {
    tenant: TenantId,
    /// The digest of filter and order.
    asked: Digest,
    /// The page ends before this place, instead of beginning behind it.
    pub(super) back: bool,
    pub(super) at: P,
}

impl Serverless {
    pub(super) fn open<P: DeserializeOwned>(
        &self,
        ctx: &SecurityContext,
        asked: Digest,
        page: &PageQuery,
    ) -> Answer<Option<Mark<P>>> {
        let Some(text) = page.cursor.as_deref() else { return Ok(None) };
        let mut sealed = text.replace('-', "+").replace('_', "/");
        sealed.extend(std::iter::repeat_n('=', (4 - sealed.len() % 4) % 4));
        let mark: Option<Mark<P>> = self.executions.seal().open(Purpose::Page, &sealed);
        let mark = mark.filter(|mark| mark.tenant == ctx.tenant && mark.asked == asked);
        let wrong = || errors::bad_request("the cursor is not one of this list; begin again without it");
        Ok(Some(mark.ok_or_else(wrong)?))
    }

    pub(super) fn close<P: Serialize>(&self, ctx: &SecurityContext, asked: Digest, back: bool, at: P) -> String {
        let mark = Mark { tenant: ctx.tenant.clone(), asked, back, at };
        let sealed = self.executions.seal().close(Purpose::Page, self.engine().ids().nonce(), &mark);
        // A cursor goes into a query, where `+` would be a space.
        sealed.trim_end_matches('=').replace('+', "-").replace('/', "_")
    }

    /// The digest of a list that only grows at its end, and where a page of it begins, counted from its beginning.
    pub(super) fn place(&self, ctx: &SecurityContext, what: &str, page: &PageQuery) -> Answer<(Digest, usize)> {
        let asked = Digest::of(format!("{what}|{:?}|{:?}", page.filter, page.order).as_bytes());
        let start = match self.open::<usize>(ctx, asked, page)? {
            None => 0,
            Some(mark) if mark.back => mark.at.saturating_sub(page.limit() as usize),
            Some(mark) => mark.at,
        };
        Ok((asked, start))
    }

    /// A page of such a list, from its place on.
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
                next_cursor: has_more.then(|| self.close(ctx, asked, false, end)),
                prev_cursor: (start > 0).then(|| self.close(ctx, asked, true, start)),
                has_more,
            },
            items,
        }
    }
}
