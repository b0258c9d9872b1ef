//! What the dispatcher knows to be open and has not handed out: the first dispatches of every tenant, read a few at a time.
//!
//! It is a view of the rows, never their place. All of it can be forgotten at any moment and is read again.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures_util::future::join_all;
use servo_model::execution::HANDLER;
use servo_model::{TenantId, Timestamp};
use servo_store::dispatch::DispatchHeads;
use servo_store::{DispatchRow, Result};

use super::concurrency::{Concurrency, Place};
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
/// Dispatches at hand. With half of them a look brings one of each tenant, and no tenant is read on.
const ROWS_MAX: usize = 16_384;
/// Tenants that are read on before the next hand-over, at the same time.
const WALKS: usize = 8;
/// While there is work at hand, the others are looked at again after so many were handed out, or after so long.
const HANDED_MAX: u32 = 32;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Waiting {
    engine: Engine,
    slots: Slots,
    concurrency: Concurrency,
    /// Those at hand, so that none is there twice, and whether they were among the first of their tenant.
    known: BTreeMap<String, bool>,
    /// How far each tenant with more than its first ones was read.
    walks: BTreeMap<TenantId, Walk>,
    /// Those of them that have little at hand, in the order in which they came to it.
    low: VecDeque<TenantId>,
    /// Tenants whose rows were walked over in vain, and until when that is not done again.
    resting: BTreeMap<TenantId, Duration>,
    /// The tenant behind which the next look begins.
    next: Option<TenantId>,
    /// What was seen since a look began with the first tenant.
    seen: Seen,
    /// Whether somebody said that there may be more than is known.
    stale: bool,
    /// Whether the next look repeats the last one, to give to others what was kept for tenants who had no use for it.
    repeats: bool,
    /// Whether the last look was such a one.
    repeated: bool,
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
    /// Whether it is among those with little at hand.
    low: bool,
}

/// What the gauges say.
#[derive(Debug, Default)]
struct Seen {
    tenants: usize,
    oldest: Option<Timestamp>,
}

impl Seen {
    /// A tenant's first rows.
    fn add(&mut self, rows: &[DispatchRow]) {
        self.tenants += 1;
        self.oldest = rows.iter().map(|row| row.queued_at).chain(self.oldest).min();
    }

    fn tell(self, now: Timestamp) {
        crate::metrics::waiting(self.tenants, self.oldest.map(|oldest| now.since(oldest)));
    }
}

impl Waiting {
    pub(crate) fn new(engine: Engine, slots: Slots, concurrency: Concurrency) -> Self {
        Self {
            engine,
            slots,
            concurrency,
            known: BTreeMap::new(),
            walks: BTreeMap::new(),
            low: VecDeque::new(),
            resting: BTreeMap::new(),
            next: None,
            seen: Seen::default(),
            stale: true,
            repeats: false,
            repeated: false,
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
        self.low.clear();
        self.resting.clear();
        self.next = None;
        // Turns are of the last look, which is not worth repeating.
        (self.repeats, self.repeated) = (false, true);
        self.seen = Seen::default();
        self.stale = true;
    }

    /// Reads what is needed for the next turn, and not more than a few pages of it.
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

    /// Counts who waits while no slot is free, so that the gauges follow just then.
    pub(crate) async fn count(&mut self, epoch: u64) -> Result<()> {
        let now = self.engine.clock().elapsed();
        if now.saturating_sub(self.looked_at) < self.engine.config().poll() {
            return Ok(());
        }
        self.looked_at = now;
        let (mut seen, mut after) = (Seen::default(), None);
        while seen.tenants < TENANTS_MAX {
            let heads = DispatchHeads { epoch, after: after.take(), tenants: TENANTS, each: 1 };
            let rows = self.engine.store().dispatch_heads(&heads).await?;
            rows.iter().for_each(|row| seen.add(std::slice::from_ref(row)));
            match rows.last() {
                Some(last) if rows.len() == TENANTS as usize => after = Some(last.tenant.clone()),
                _ => break,
            }
        }
        seen.tell(self.engine.now());
        Ok(())
    }

    /// Whether nothing is at hand only because reading is not at its end, or because places are kept for tenants that have no
    /// use for them: then the next look gives them to others.
    pub(crate) fn is_unfinished(&mut self) -> bool {
        let reads_on = {
            let fair = self.slots.lock();
            if !fair.has_slot() || fair.is_ready() {
                return false;
            }
            self.low.iter().any(|tenant| fair.has_room(tenant))
        };
        // A look that is not at its end goes on from there, and not again; and with all at hand that fits, a look reads nothing.
        let can_repeat = self.next.is_none() && self.known.len() < ROWS_MAX;
        if !reads_on && can_repeat && !self.repeated && self.concurrency.has_turns_left() {
            (self.repeats, self.stale) = (true, true);
        }
        reads_on || (self.repeats && can_repeat)
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
        let mut begins = self.next.is_none();
        let mut tenants = 0;
        while self.known.len() < ROWS_MAX {
            let each = if self.known.len() < ROWS_MAX / 2 { EACH } else { 1 };
            let heads = DispatchHeads { epoch: self.epoch, after: self.next.take(), tenants: TENANTS, each };
            let rows = match self.engine.store().dispatch_heads(&heads).await {
                Ok(rows) => rows,
                Err(error) => {
                    self.stale = true;
                    return Err(error);
                }
            };
            // Not before there is something to look at: a look that fails changes no turns.
            if std::mem::take(&mut begins) {
                self.repeated = std::mem::take(&mut self.repeats);
                let rests = |tenant: &TenantId| self.resting.contains_key(tenant);
                self.concurrency.look_again(rests, |tenant| self.slots.lock().has_room(tenant), self.repeated);
            }
            let last = rows.last().map(|row| row.tenant.clone());
            let seen = self.first(rows, each);
            tenants += seen;
            if seen < TENANTS as usize {
                std::mem::take(&mut self.seen).tell(self.engine.now());
                break;
            }
            self.next = last;
            if tenants >= TENANTS_MAX {
                break;
            }
        }
        // The others are first the next time, which is soon.
        self.stale |= self.next.is_some() || self.known.len() >= ROWS_MAX;
        self.looked_at = self.engine.clock().elapsed();
        self.took = self.looked_at.saturating_sub(began);
        self.handed = 0;
        Ok(())
    }

    /// The first dispatches of some tenants, by tenant. Says of how many.
    fn first(&mut self, rows: Vec<DispatchRow>, each: u32) -> usize {
        let now = self.engine.clock().elapsed();
        let mut tenants = 0;
        for rows in rows.chunk_by(|a, b| a.tenant == b.tenant) {
            tenants += 1;
            self.seen.add(rows);
            let Some(last) = rows.last() else { continue };
            let rests = self.resting.get(&last.tenant).is_some_and(|until| now < *until);
            if rows.len() == each as usize && !rests && !self.walks.contains_key(&last.tenant) {
                let after = Some((last.queued_at, last.request_id.clone()));
                self.low.push_back(last.tenant.clone());
                self.walks.insert(last.tenant.clone(), Walk { after, low: true, ..Walk::default() });
            }
        }
        for row in rows {
            self.add(row, true);
        }
        tenants
    }

    /// Reads on where a tenant with more has little at hand: one page each, of a few tenants.
    async fn walk(&mut self) -> Result<()> {
        if self.known.len() >= ROWS_MAX / 2 && self.slots.lock().is_ready() {
            return Ok(());
        }
        let chosen = self.choose();
        let page = (ROWS_MAX / self.walks.len().max(1)).clamp(EACH as usize, PAGE);
        let limit = u32::try_from(page).unwrap_or(EACH);
        let store = self.engine.store().clone();
        let read = |(tenant, walk): (TenantId, Walk)| {
            let (store, epoch, after) = (&store, self.epoch, walk.after.clone());
            async move {
                let rows = store.open_dispatches(epoch, &tenant, after, limit).await;
                (tenant, walk, rows)
            }
        };
        let mut failed = None;
        for (tenant, walk, rows) in join_all(chosen.into_iter().map(read)).await {
            match rows {
                Ok(rows) => self.walked(tenant, walk, rows, page),
                // Its rows are met again from the first one on.
                Err(error) => failed = Some(error),
            }
        }
        self.stale |= failed.is_some();
        failed.map_or(Ok(()), Err)
    }

    /// Tenants to read on, in turn. Those at their own limit are passed over, and stay.
    fn choose(&mut self) -> Vec<(TenantId, Walk)> {
        let fair = self.slots.lock();
        let mut chosen = Vec::new();
        for _ in 0..self.low.len() {
            let Some(tenant) = self.low.pop_front() else { break };
            if !fair.has_room(&tenant) {
                self.low.push_back(tenant);
            } else if fair.waiting_of(&tenant) >= LOW {
                // More came to hand meanwhile.
                self.walks.entry(tenant).and_modify(|walk| walk.low = false);
            } else if let Some(walk) = self.walks.remove(&tenant) {
                chosen.push((tenant, walk));
            }
            if chosen.len() == WALKS {
                break;
            }
        }
        chosen
    }

    fn walked(&mut self, tenant: TenantId, mut walk: Walk, rows: Vec<DispatchRow>, page: usize) {
        let more = rows.len() == page;
        walk.after = rows.last().map(|row| (row.queued_at, row.request_id.clone()));
        for row in rows {
            walk.passed += usize::from(!self.may_run(&row, false));
            walk.found += usize::from(self.add(row, false));
        }
        if more {
            walk.low = false;
            self.walks.insert(tenant.clone(), walk);
            self.lower(&tenant);
        } else if walk.passed > PAGE.max(walk.found) {
            // Most of what waits may not run now. Walking over it for every place that is given back would be all that is
            // done; its first ones are looked at as before.
            let until = self.engine.clock().elapsed() + self.engine.config().poll();
            self.resting.insert(tenant, until);
        }
    }

    /// Notes that a tenant has little at hand, if it has and there is more.
    fn lower(&mut self, tenant: &TenantId) {
        if let Some(walk) = self.walks.get_mut(tenant)
            && !walk.low
            && self.slots.lock().waiting_of(tenant) < LOW
        {
            walk.low = true;
            self.low.push_back(tenant.clone());
        }
    }

    /// One that was read, perhaps among the first of its tenant. False if it is at hand already, in flight, or may not run now.
    fn add(&mut self, row: DispatchRow, is_first: bool) -> bool {
        if self.engine.in_flight().contains(&row.request_id)
            || !self.may_run(&row, is_first)
            || self.known.contains_key(&row.request_id)
        {
            return false;
        }
        self.known.insert(row.request_id.clone(), is_first);
        // Sabotage: first come, first served.
        let fifo = self.engine.config().is_sabotaged("fifo-dispatch");
        let lane = if fifo { TenantId::system() } else { row.tenant.clone() };
        self.slots.push(&lane, row);
        true
    }

    /// An invocation whose function has all it may have stays where it is. Whether it may is checked again when it begins.
    fn may_run(&self, row: &DispatchRow, is_first: bool) -> bool {
        !is_invocation(row) || self.concurrency.has_room(&row.tenant, &row.target, is_first)
    }

    /// The next one, with its slot, and with its place if it is an invocation.
    pub(crate) fn take(&mut self) -> Option<(DispatchRow, Slot, Option<Place>)> {
        while let Some((row, slot)) = self.slots.take() {
            let is_first = self.known.remove(&row.request_id).unwrap_or(false);
            self.lower(&row.tenant);
            let place = is_invocation(&row).then(|| self.concurrency.take(&row.tenant, &row.target, is_first));
            if place.as_ref().is_none_or(Option::is_some) {
                self.handed += 1;
                return Some((row, slot, place.flatten()));
            }
        }
        None
    }

    /// Whether a slot that is given back has a use.
    pub(crate) fn wants_slots(&self) -> bool {
        self.stale || !self.known.is_empty() || !self.walks.is_empty()
    }
}

fn is_invocation(row: &DispatchRow) -> bool {
    row.step.as_ref().is_some_and(|step| step.step_id.as_str() == HANDLER)
}
