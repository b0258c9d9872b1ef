//! The slots of this node, and what waits for one: who is next is decided by `servo-sched`.

use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::TenantId;
use servo_sched::{Fair, Share, Shares};
use servo_store::DispatchRow;
use tokio::sync::Notify;

use crate::config::{DispatchConfig, TenantShare};

#[derive(Debug, Clone)]
pub(crate) struct Slots {
    fair: Arc<Mutex<Fair<TenantId, DispatchRow>>>,
    freed: Arc<Notify>,
}

/// One slot. Given back when dropped, however the attempt ended.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
    tenant: TenantId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().release(&self.tenant);
        self.slots.freed.notify_one();
    }
}

impl Slots {
    pub(crate) fn new(config: &DispatchConfig) -> Self {
        let share = |share: &TenantShare| Share { weight: share.weight, slots: share.in_flight_max };
        let named = config.tenants.iter().map(|(tenant, own)| (tenant.clone(), share(own))).collect();
        let shares = Shares { others: share(&config.default), named };
        let fair = Fair::new(config.in_flight_max, shares);
        Self { fair: Arc::new(Mutex::new(fair)), freed: Arc::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Fair<TenantId, DispatchRow>> {
        self.fair.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn push(&self, lane: &TenantId, row: DispatchRow) {
        self.lock().push(lane, row);
    }

    /// The next dispatch whose turn it is, with a slot.
    pub(crate) fn take(&self) -> Option<(DispatchRow, Slot)> {
        let (tenant, row) = self.lock().take()?;
        Some((row, Slot { slots: self.clone(), tenant }))
    }

    /// A slot for work that does not wait, if none does and there is one.
    pub(crate) fn occupy(&self, tenant: &TenantId) -> Option<Slot> {
        let taken = self.lock().occupy(tenant);
        taken.then(|| Slot { slots: self.clone(), tenant: tenant.clone() })
    }

    /// Ready when a slot was given back since the last time.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }
}
