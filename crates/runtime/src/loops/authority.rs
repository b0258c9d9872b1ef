//! Holding the authority: acquire when it is free, renew in time, step down at the first doubt.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use servo_model::Timestamp;
use servo_model::contract::RuntimeEvent;
use servo_store::{Append, AuthorityChange, Fence};

use crate::contract::system_stream;
use crate::engine::Engine;
use crate::shutdown::Shutdown;

/// What this node knows about its own authority. Checked against the node's clock as well: a process that was paused
/// across the expiry knows it before it asks.
#[derive(Debug, Clone)]
pub struct Authority {
    owner: Arc<str>,
    /// Sabotage: the end of the lease is not looked at.
    trusts: bool,
    held: Arc<Mutex<Option<Held>>>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    epoch: u64,
    until: Timestamp,
}

impl Authority {
    pub fn new(owner: &str) -> Self {
        Self { owner: owner.into(), trusts: false, held: Arc::default() }
    }

    pub(crate) fn trusting(self, trusts: bool) -> Self {
        Self { trusts, ..self }
    }

    pub fn owner(&self) -> &Arc<str> {
        &self.owner
    }

    /// The fence for scheduler writes, while the lease lasts.
    pub fn fence(&self, now: Timestamp) -> Option<Fence> {
        let held = *self.lock();
        held.filter(|held| now < held.until || self.trusts).map(|held| Fence { epoch: held.epoch })
    }

    fn set(&self, held: Option<Held>) {
        *self.lock() = held;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A write was refused as fenced: somebody else has the authority now.
    pub(crate) fn lost(&self, epoch: u64) {
        if self.forget(epoch) {
            tracing::warn!(owner = %self.owner, epoch, "authority lost");
        }
    }

    /// Not a later one that was acquired meanwhile.
    fn forget(&self, epoch: u64) -> bool {
        self.lock().take_if(|held| held.epoch == epoch).is_some()
    }
}

/// `stop` is later than the engine's own end: while attempts drain, the authority is kept, so that nobody takes them over.
pub(crate) async fn run(engine: Engine, authority: Authority, stop: Shutdown) {
    let lease = Duration::from_millis(engine.config().authority.lease_ms);
    loop {
        let renewed = step(&engine, &authority, lease).await;
        // Renew well before the end; look for a free authority a little less often than it can expire.
        let wait = if renewed { lease / 3 } else { lease / 5 };
        if !super::pause(engine.clock().as_ref(), &stop, &engine.wake().authority, wait).await {
            break;
        }
    }
}

/// One try. True if this node holds the authority now.
async fn step(engine: &Engine, authority: &Authority, lease: Duration) -> bool {
    let asked_at = engine.now();
    let held = *authority.lock();
    let result = ask(engine, authority, held.filter(|held| asked_at < held.until), lease).await;
    match result {
        Ok(epoch) => {
            // The lease runs from the moment of asking, so this node never believes in it longer than the store does.
            authority.set(Some(Held { epoch, until: asked_at.plus(lease) }));
            if held.is_none_or(|held| held.epoch != epoch) {
                tracing::info!(owner = %authority.owner, epoch, "authority acquired");
                engine.wake().dispatch.notify_one();
                engine.wake().replay.notify_one();
                engine.wake().log_grew();
            }
            true
        }
        Err(error) => {
            // A failed or unknown renewal means stepping down: the lease may be somebody else's by now.
            if held.is_some() {
                tracing::warn!(owner = %authority.owner, %error, "authority not renewed, stepping down");
            }
            authority.set(None);
            false
        }
    }
}

/// The lease ends by the store's clock, so it is asked for in the store's time: a node whose clock is ahead would
/// otherwise keep the authority long after it is gone.
async fn ask(
    engine: &Engine,
    authority: &Authority,
    held: Option<Held>,
    lease: Duration,
) -> Result<u64, servo_store::Error> {
    let until = engine.store_now().await?.plus(lease);
    match held {
        Some(held) => renew(engine, authority, held.epoch, until).await,
        None => acquire(engine, authority, until).await,
    }
}

async fn acquire(engine: &Engine, authority: &Authority, until: Timestamp) -> Result<u64, servo_store::Error> {
    let (owner, leased_until) = (authority.owner.to_string(), until.to_string());
    let lease_id = format!("{owner}-{}", until.as_millis());
    let change = AuthorityChange::Acquire {
        owner: owner.clone(),
        lease_id: lease_id.clone(),
        leased_until: leased_until.clone(),
    };
    write(engine, change, RuntimeEvent::AuthorityAcquired { owner, lease_id, leased_until }, None).await
}

async fn renew(
    engine: &Engine,
    authority: &Authority,
    epoch: u64,
    until: Timestamp,
) -> Result<u64, servo_store::Error> {
    let (owner, leased_until) = (authority.owner.to_string(), until.to_string());
    let lease_id = format!("{owner}-{epoch}");
    let change = AuthorityChange::Renew {
        owner: owner.clone(),
        epoch: Some(epoch),
        lease_id: lease_id.clone(),
        leased_until: leased_until.clone(),
    };
    let phase = if engine.in_flight().is_empty() { "idle" } else { "execute" };
    let heartbeat = RuntimeEvent::RunHeartbeat { owner: owner.clone(), phase: phase.to_owned() };
    write(engine, change, RuntimeEvent::AuthorityRenewed { owner, lease_id, leased_until }, Some(heartbeat)).await
}

async fn write(
    engine: &Engine,
    change: AuthorityChange,
    event: RuntimeEvent,
    also: Option<RuntimeEvent>,
) -> Result<u64, servo_store::Error> {
    let events: Vec<_> = [Some(event), also].into_iter().flatten().collect();
    let stream = system_stream(engine.ids(), engine.now(), &events);
    let append = Append { authority: Some(change), streams: vec![stream], ..Append::default() };
    let appended = engine.store().append(append).await?;
    appended.epoch.ok_or(servo_store::Error::Closed)
}

/// Gives the authority up, so that nobody need wait for the lease to end; with an epoch, only that one.
pub(crate) async fn resign(engine: &Engine, authority: &Authority, only: Option<u64>) {
    let Some(Held { epoch, .. }) = *authority.lock() else { return };
    if only.is_some_and(|only| only != epoch) {
        return;
    }
    let change = AuthorityChange::Resign { owner: authority.owner.to_string(), epoch };
    let append = Append { authority: Some(change), ..Append::default() };
    if let Err(error) = engine.store().append(append).await {
        tracing::debug!(%error, "the authority was not resigned; it will expire");
    }
    authority.forget(epoch);
}
