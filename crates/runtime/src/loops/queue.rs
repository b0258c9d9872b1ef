//! The run-queue reconciler: claims queued runs with a lease and begins them. Stateless and idempotent; any number may
//! run at once, and each run is begun once, because the lease is atomic and the append checks lease and sequence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use servo_machine::Command;
use servo_model::{RunId, RunState, TenantId};
use servo_store::dispatch::{QueueClaim, QueuedRun};
use servo_store::log::QueueChange;
use servo_store::{Append, Expected, Scope, StreamAppend};

use crate::engine::{Engine, Error, Order};

/// Runs claimed at a time, of as many tenants at most.
const BATCH: u32 = 64;
/// How long a run waits that found its tenant at the limit.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Rest after a batch of which nothing could be started: so long for each, up to a limit.
const IN_VAIN: Duration = Duration::from_millis(100);
const IN_VAIN_MAX: Duration = Duration::from_secs(1);

/// What became of a queued run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOutcome {
    Started,
    /// The store did not take it; tried again a little later.
    Failed,
    /// Not to be started now: no room, or it no longer waits.
    Skipped,
}

pub(crate) async fn run(engine: Engine, owner: String) {
    let poll = engine.config().poll();
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().queue, poll).await {
        let mut full = FullTenants::default();
        // Every claimed run leaves the queue or gets a later time, so this comes to an end.
        loop {
            match lap(&engine, &owner, &mut full).await {
                // Whoever has a run waiting was seen.
                Ok(Lap { began: true, .. }) if !engine.shutdown().is_triggered() => {}
                Ok(Lap { seen, .. }) => {
                    // Nobody has room. Putting back all that wait, at every hint, would keep the store busy with nothing.
                    rest(&engine, seen).await;
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, "the run queue could not be read");
                    break;
                }
            }
        }
    }
}

/// Once around all tenants.
#[derive(Debug, Default)]
struct Lap {
    seen: u32,
    began: bool,
}

/// However many tenants wait in vain, and since when: the next claim begins behind them.
async fn lap(engine: &Engine, owner: &str, full: &mut FullTenants) -> Result<Lap, servo_store::Error> {
    let mut lap = Lap::default();
    let mut after = None;
    loop {
        let round = round(engine, owner, after, full).await?;
        lap.seen = lap.seen.saturating_add(u32::try_from(round.outcomes.len()).unwrap_or(u32::MAX));
        lap.began |= round.outcomes.iter().any(|(_, outcome)| *outcome == QueueOutcome::Started);
        after = round.next;
        if after.is_none() || engine.shutdown().is_triggered() {
            return Ok(lap);
        }
    }
}

async fn rest(engine: &Engine, seen: u32) {
    let rest = (IN_VAIN * (seen / BATCH)).min(IN_VAIN_MAX);
    if rest > Duration::ZERO {
        tokio::select! {
            biased;
            () = engine.shutdown().triggered() => {}
            () = engine.clock().sleep(rest) => {}
        }
    }
}

/// Tenants found at a limit, with how many of their runs were put back since. A tenant with a long queue must not keep
/// the runs of others from being seen: the further behind, the later it is looked at again.
type FullTenants = BTreeMap<(TenantId, u32), u32>;

/// One claim, and the tenant behind which the next one begins.
struct Round {
    outcomes: Vec<(RunId, QueueOutcome)>,
    next: Option<TenantId>,
}

/// One round of the reconciler, from the first tenant on.
pub async fn dequeue_and_start(engine: &Engine, owner: &str) -> Result<Vec<(RunId, QueueOutcome)>, servo_store::Error> {
    Ok(round(engine, owner, None, &mut FullTenants::default()).await?.outcomes)
}

async fn round(
    engine: &Engine,
    owner: &str,
    after: Option<TenantId>,
    full: &mut FullTenants,
) -> Result<Round, servo_store::Error> {
    let lease_ms = engine.config().dispatch.queue_lease_ms;
    let claim = QueueClaim { owner: owner.to_owned(), lease_ms, after, limit: BATCH };
    let claimed = engine.store().claim_queue(&claim).await?;
    // With one run of each of as many tenants as a claim may have, there may be others behind them. A claim with fewer has
    // come to the end: another node's claim at the same moment looks like it, too, and then that node sees to the others.
    let tenants: BTreeSet<_> = claimed.iter().map(|queued| &queued.tenant).collect();
    let next = (tenants.len() == BATCH as usize).then(|| tenants.last().map(|last| (*last).clone())).flatten();
    let mut outcomes = Vec::with_capacity(claimed.len());
    for queued in claimed {
        let outcome = begin(engine, owner, &queued, full).await;
        outcomes.push((queued.run_id, outcome));
    }
    Ok(Round { outcomes, next })
}

async fn begin(engine: &Engine, owner: &str, queued: &QueuedRun, full: &mut FullTenants) -> QueueOutcome {
    match limit_reached(engine, queued, full).await {
        Ok(None) => {}
        Ok(Some(limit)) => {
            let put_back = full.entry((queued.tenant.clone(), limit)).or_default();
            let wait = RETRY_AFTER * (1 + *put_back / BATCH);
            *put_back += 1;
            put_back_until(engine, owner, queued, wait).await;
            return QueueOutcome::Skipped;
        }
        Err(error) => {
            tracing::warn!(run_id = %queued.run_id, %error, "queued run not started");
            put_back_until(engine, owner, queued, RETRY_AFTER).await;
            return QueueOutcome::Failed;
        }
    }
    let mut order = Order::new(Scope::System, queued.run_id.clone(), Command::Begin, "engine");
    order.queue_lease = Some(owner.to_owned());
    match engine.execute(order).await {
        Ok(_) => QueueOutcome::Started,
        Err(Error::Refused(_)) => {
            remove(engine, owner, queued).await;
            QueueOutcome::Skipped
        }
        // Somebody else has the lease by now, or the run is gone or set aside.
        Err(Error::Store(servo_store::Error::LeaseLost { .. } | servo_store::Error::NotFound))
        | Err(Error::Quarantined(_)) => QueueOutcome::Skipped,
        Err(error) => {
            tracing::warn!(run_id = %queued.run_id, %error, "queued run not started");
            put_back_until(engine, owner, queued, RETRY_AFTER).await;
            QueueOutcome::Failed
        }
    }
}

async fn put_back_until(engine: &Engine, owner: &str, queued: &QueuedRun, wait: Duration) {
    let later = engine.now().plus(wait);
    if let Err(error) = engine.store().release_queue(&queued.run_id, owner, later).await {
        tracing::debug!(run_id = %queued.run_id, %error, "queue lease not returned; it will expire");
    }
}

/// The limit that keeps a run waiting, if one does.
async fn limit_reached(
    engine: &Engine,
    queued: &QueuedRun,
    full: &FullTenants,
) -> Result<Option<u32>, servo_store::Error> {
    let (config, tenant) = (engine.config(), queued.tenant.as_str());
    let of_run = |state: &RunState| match &state.execution {
        Some(execution) => config.overload_of(tenant, &execution.head.start).active_runs_max,
        None => {
            let plan_id = state.plan_ref.as_ref().map_or("", |plan| plan.plan_id.as_str());
            config.overload_for(tenant, plan_id).active_runs_max
        }
    };
    let limit = match engine.view(&Scope::System, &queued.run_id, of_run).await {
        Ok(limit) => limit,
        Err(Error::Store(error)) if !matches!(error, servo_store::Error::NotFound) => return Err(error),
        // Whatever else is wrong with it shows when it is begun.
        Err(_) => return Ok(None),
    };
    if full.contains_key(&(queued.tenant.clone(), limit)) {
        return Ok(Some(limit));
    }
    let active = engine.count_active(&queued.tenant, limit).await?;
    Ok((active >= limit).then_some(limit))
}

/// A queue row whose run no longer waits.
async fn remove(engine: &Engine, owner: &str, queued: &QueuedRun) {
    let mut stream = StreamAppend::new(queued.run_id.clone(), queued.tenant.clone(), Expected::Any);
    stream.queue = QueueChange::Remove { leased_by: Some(owner.to_owned()) };
    if let Err(error) = engine.store().append(Append::one(stream)).await {
        tracing::debug!(run_id = %queued.run_id, %error, "queue row not removed");
    }
}
