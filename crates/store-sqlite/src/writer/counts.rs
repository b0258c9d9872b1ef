//! Numbers that are asked for often and would be slow to count: dispatches by state, invocations by status. What a group of
//! jobs changes in them is summed up here and written once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::Connection;
use servo_model::TenantId;
use servo_model::contract::DispatchState;
use servo_model::invocation::InvocationStatus;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    dispatches: [i64; DispatchState::ALL.len()],
    /// By tenant and entrypoint.
    invocations: BTreeMap<(TenantId, Arc<str>), BTreeMap<InvocationStatus, i64>>,
    /// Where invocations were deleted: rows that count nothing leave.
    deleted: BTreeSet<(TenantId, Arc<str>)>,
}

impl Counts {
    pub(crate) fn add_dispatches(&mut self, state: DispatchState, change: i64) {
        self.dispatches[index(state)] += change;
    }

    pub(crate) fn add_invocations(
        &mut self,
        tenant: &TenantId,
        plan_id: &Arc<str>,
        status: InvocationStatus,
        change: i64,
    ) {
        let by_status = self.invocations.entry((tenant.clone(), plan_id.clone())).or_default();
        *by_status.entry(status).or_default() += change;
    }

    pub(crate) fn delete_invocation(&mut self, tenant: &TenantId, plan_id: &Arc<str>, status: InvocationStatus) {
        self.add_invocations(tenant, plan_id, status, -1);
        self.deleted.insert((tenant.clone(), plan_id.clone()));
    }

    pub(crate) fn merge(&mut self, other: Counts) {
        for (own, other) in self.dispatches.iter_mut().zip(other.dispatches) {
            *own += other;
        }
        for (whose, by_status) in other.invocations {
            let own = self.invocations.entry(whose).or_default();
            for (status, change) in by_status {
                *own.entry(status).or_default() += change;
            }
        }
        self.deleted.extend(other.deleted);
    }

    /// Writes the sums into the transaction.
    pub(crate) fn flush(&self, conn: &Connection) -> rusqlite::Result<()> {
        for state in DispatchState::ALL {
            let change = self.dispatches[index(state)];
            if change != 0 {
                let sql = "UPDATE dispatch_counts SET count = count + ?2 WHERE state = ?1";
                conn.prepare_cached(sql)?.execute((state.as_str(), change))?;
            }
        }
        for ((tenant, plan_id), by_status) in &self.invocations {
            for (status, change) in by_status.iter().filter(|(_, change)| **change != 0) {
                let sql = if *change > 0 {
                    "INSERT INTO invocation_counts (tenant_id, plan_id, visible, count) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (tenant_id, plan_id, visible) DO UPDATE SET count = count + excluded.count"
                } else {
                    "UPDATE invocation_counts SET count = count + ?4 \
                     WHERE tenant_id = ?1 AND plan_id = ?2 AND visible = ?3"
                };
                conn.prepare_cached(sql)?.execute((tenant.as_str(), plan_id, status.as_str(), change))?;
            }
        }
        for (tenant, plan_id) in &self.deleted {
            let sql = "DELETE FROM invocation_counts WHERE tenant_id = ?1 AND plan_id = ?2 AND count = 0";
            conn.prepare_cached(sql)?.execute((tenant.as_str(), plan_id))?;
        }
        Ok(())
    }
}

fn index(state: DispatchState) -> usize {
    match state {
        DispatchState::Pending => 0,
        DispatchState::Notified => 1,
        DispatchState::Delivered => 2,
        DispatchState::Failed => 3,
    }
}
