//! What the dispatcher knows to be open and has not handed out: the first dispatches of every tenant, read a few at a time.
//!
//! It is a view of the rows, never their place. All of it can be forgotten at any moment and is read again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use servo_model::execution::HANDLER;
use servo_model::{TenantId, Timestamp};
use servo_store::dispatch::DispatchHeads;
use servo_store::{DispatchRow, Result};

use super::concurrency::Concurrency;
use super::slots::{Slot, Slots};
use crate::engine::Engine;

/// Tenants looked at per query, and in one look.
const TENANTS: u32 = 64;
const TENANTS_MAX: usize = 1_024;
/// Dispatches of each that such a look brings.
const EACH: u32 = 16;
/// With fewer than this at hand, more of a tenant's are read, so that it does not miss a turn.
const LOW: usize = 16;
/// Dispatches of one tenant per query, fewer where many tenants have some.
const PAGE: usize = 256;
const ROWS_MAX: usize = 16_384;
/// While there is work at hand, the others are looked at again after so many were handed out, or after so long.
const HANDED_MAX: u32 = 32;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Waiting {
    engine: Engine,
    slots: Slots,
    concurrency: Concurrency,
    /// Those at hand, so that none is there twice.
    known: BTreeSet<String>,
    /// How far each tenant with more than its first ones was read.
    walks: BTreeMap<TenantId, Walk>,
    /// Tenants whose rows were walked over in vain, and until when that is not done again.
    resting: BTreeMap<TenantId, Duration>,
    /// The tenant behind which the next look begins.
    next: Option<TenantId>,
    /// Whether somebody said that there may be more than is known.
    stale: bool,
    handed: u32,
    looked_at: Duration,
    took: Duration,
    epoch: u64,
}

#[derive(Debug, Default)]
struct Walk {
    after: Option<(Timestamp, String)>,
    /// Rows that may not run now, and those that may.
    passed: usize,
    found: usize,
}

impl Waiting {
    pub(crate) fn new(engine: Engine, slots: Slots, concurrency: Concurrency) -> Self {
        Self {
            engine,
            slots,
            concurrency,
            known: BTreeSet::new(),
            walks: BTreeMap::new(),
            resting: BTreeMap::new(),
            next: None,
            stale: true,
            handed: 0,
            looked_at: Duration::ZERO,
            took: Duration::ZERO,
            epoch: 0,
        }
    }

    /// There may be more than is known.
    pub(crate) fn hint(&mut self) {
        self.stale = true;
    }

    /// What was read may be another's by now.
    pub(crate) fn forget(&mut self) {
        self.slots.lock().clear();
        self.known.clear();
        self.walks.clear();
        self.resting.clear();
        self.next = None;
        self.stale = true;
    }

    /// Reads what is needed for the next turn, and not more than a page of it.
    pub(crate) async fn fill(&mut self, epoch: u64) -> Result<()> {
        if self.epoch != epoch {
            self.forget();
            self.epoch = epoch;
        }
        let now = self.engine.clock().elapsed();
        if self.stale && (!self.slots.lock().is_ready() || self.is_time(now)) {
            self.look().await?;
        }
        self.walk().await
    }

    /// Whether nothing is at hand only because reading is not at its end.
    pub(crate) fn is_unfinished(&self) -> bool {
        let fair = self.slots.lock();
        fair.has_slot() && !fair.is_ready() && self.walks.keys().any(|tenant| fair.has_room(tenant))
    }

    /// Whether enough was handed out, or enough time has passed, to look again while something is ready. A look that took
    /// long, because many tenants have work, is worth more hand-overs.
    fn is_time(&self, now: Duration) -> bool {
        self.handed >= HANDED_MAX || now.saturating_sub(self.looked_at) >= PAUSE + self.took * 4
    }

    /// The first dispatches of every tenant.
    async fn look(&mut self) -> Result<()> {
        let began = self.engine.clock().elapsed();
        // Before the first read: a hint that comes while reading may be about something that was not seen.
        // A look that goes on behind the end of the last one leaves out the tenants before.
        self.stale = self.next.is_some();
        self.resting.retain(|_, until| began < *until);
        let mut oldest: Option<Timestamp> = None;
        let mut tenants = 0;
        loop {
            let heads = DispatchHeads { epoch: self.epoch, after: self.next.take(), tenants: TENANTS, each: EACH };
            let rows = match self.engine.store().dispatch_heads(&heads).await {
                Ok(rows) => rows,
                Err(error) => {
                    self.stale = true;
                    return Err(error);
                }
            };
            let last = rows.last().map(|row| row.tenant.clone());
            let mut seen = 0;
            for rows in rows.chunk_by(|a, b| a.tenant == b.tenant) {
                seen += 1;
                oldest = rows.iter().map(|row| row.queued_at).chain(oldest).min();
                self.first(rows);
            }
            tenants += seen;
            if seen < TENANTS as usize {
                break;
            }
            self.next = last;
            if tenants >= TENANTS_MAX {
                // The others are first the next time, which is soon.
                self.stale = true;
                break;
            }
        }
        self.looked_at = self.engine.clock().elapsed();
        self.took = self.looked_at.saturating_sub(began);
        self.handed = 0;
        crate::metrics::waiting(tenants, oldest.map(|oldest| self.engine.now().since(oldest)));
        Ok(())
    }

    /// A tenant's first dispatches.
    fn first(&mut self, rows: &[DispatchRow]) {
        let Some(last) = rows.last() else { return };
        for row in rows {
            self.add(row.clone());
        }
        let now = self.engine.clock().elapsed();
        let tenant = &last.tenant;
        let rests = self.resting.get(tenant).is_some_and(|until| now < *until);
        if rows.len() == EACH as usize && !rests && !self.walks.contains_key(tenant) {
            let after = Some((last.queued_at, last.request_id.clone()));
            self.walks.insert(tenant.clone(), Walk { after, ..Walk::default() });
        }
    }

    /// Reads on where a tenant with more has little at hand: one page each.
    async fn walk(&mut self) -> Result<()> {
        let low: Vec<_> = {
            let fair = self.slots.lock();
            let low = |tenant: &&TenantId| fair.waiting_of(tenant) < LOW && fair.has_room(tenant);
            self.walks.keys().filter(low).cloned().collect()
        };
        if low.is_empty() {
            return Ok(());
        }
        let page = (ROWS_MAX / self.walks.len()).clamp(EACH as usize, PAGE);
        for tenant in low {
            let Some(mut walk) = self.walks.remove(&tenant) else { continue };
            let limit = u32::try_from(page).unwrap_or(EACH);
            let after = walk.after.clone();
            let rows = match self.engine.store().open_dispatches(self.epoch, &tenant, after, limit).await {
                Ok(rows) => rows,
                Err(error) => {
                    self.stale = true;
                    return Err(error);
                }
            };
            let more = rows.len() == page;
            walk.after = rows.last().map(|row| (row.queued_at, row.request_id.clone()));
            for row in rows {
                walk.passed += usize::from(!self.may_run(&row));
                walk.found += usize::from(self.add(row));
            }
            if more {
                self.walks.insert(tenant, walk);
            } else if walk.passed > PAGE.max(walk.found) {
                // Most of what waits may not run now. Walking over it for every place that is given back would be all that
                // is done; its first ones are looked at as before.
                let until = self.engine.clock().elapsed() + self.engine.config().poll();
                self.resting.insert(tenant, until);
            }
        }
        Ok(())
    }

    /// False if it is at hand already, in flight, or may not run now.
    fn add(&mut self, row: DispatchRow) -> bool {
        if self.engine.in_flight().contains(&row.request_id)
            || !self.may_run(&row)
            || self.known.contains(&row.request_id)
        {
            return false;
        }
        self.known.insert(row.request_id.clone());
        // Sabotage: first come, first served.
        let fifo = self.engine.config().is_sabotaged("fifo-dispatch");
        let lane = if fifo { TenantId::system() } else { row.tenant.clone() };
        self.slots.push(&lane, row);
        true
    }

    /// An invocation whose function has all it may have stays where it is. Whether it may is checked again when it begins.
    fn may_run(&self, row: &DispatchRow) -> bool {
        let handler = row.step.as_ref().is_some_and(|step| step.step_id.as_str() == HANDLER);
        !handler || self.concurrency.has_room(&row.tenant, &row.target)
    }

    /// The next one, with its slot.
    pub(crate) fn take(&mut self) -> Option<(DispatchRow, Slot)> {
        while let Some((row, slot)) = self.slots.take() {
            self.known.remove(&row.request_id);
            if self.may_run(&row) {
                self.handed += 1;
                return Some((row, slot));
            }
        }
        None
    }

    /// Whether a slot that is given back has a use.
    pub(crate) fn wants_slots(&self) -> bool {
        self.stale || !self.known.is_empty() || !self.walks.is_empty()
    }
}
