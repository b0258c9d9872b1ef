//! Holding the authority: acquire when it is free, renew in time, step down at the first doubt.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use servo_adapter::{Claim, Right, Standing};
use servo_model::Timestamp;
use servo_model::contract::RuntimeEvent;
use servo_store::error::Retry;
use servo_store::{Append, AuthorityChange, Fence};
use tokio::sync::watch;

use crate::contract::system_stream;
use crate::engine::Engine;
use crate::shutdown::Shutdown;

/// What this node knows about its own authority. Its end is known by a clock that nobody sets: a process that was paused
/// across the expiry knows it before it asks, and a step of the wall clock ends or lengthens nothing.
#[derive(Debug, Clone)]
pub struct Authority {
    owner: Arc<str>,
    /// Sabotage: the end of the lease is not looked at.
    trusts: bool,
    known: Arc<watch::Sender<Known>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    held: Option<Held>,
    /// This node's latest terms that follow each other without another's in between, first and last: work of each of them
    /// is still this node's.
    unbroken: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    epoch: u64,
    /// Of the node's elapsed time.
    until: Duration,
}

impl Authority {
    pub fn new(owner: &str) -> Self {
        Self { owner: owner.into(), trusts: false, known: Arc::new(watch::Sender::new(Known::default())) }
    }

    pub(crate) fn trusting(self, trusts: bool) -> Self {
        Self { trusts, ..self }
    }

    pub fn owner(&self) -> &Arc<str> {
        &self.owner
    }

    /// The fence for scheduler writes, while the lease lasts at this moment of the node's elapsed time.
    pub fn fence(&self, elapsed: Duration) -> Option<Fence> {
        let held = self.known.borrow().held;
        held.filter(|held| elapsed < held.until || self.trusts).map(|held| Fence { epoch: held.epoch })
    }

    /// Whether work that was begun under `fence` is this node's at this moment of its elapsed time.
    pub(crate) fn standing(&self, fence: Fence, elapsed: Duration) -> Standing {
        let known = *self.known.borrow();
        if self.trusts {
            return Standing::Held;
        }
        match known.unbroken {
            Some((first, last)) if (first..=last).contains(&fence.epoch) => {
                let is_held = known.held.is_some_and(|held| elapsed < held.until);
                if is_held { Standing::Held } else { Standing::InDoubt }
            }
            _ => Standing::PassedOn,
        }
    }

    /// The right to act for work that was begun under `fence`.
    pub(crate) fn right(&self, engine: &Engine, fence: Fence) -> Right {
        Right::new(Arc::new(Term { authority: self.clone(), engine: engine.clone(), fence }))
    }

    fn held(&self) -> Option<Held> {
        self.known.borrow().held
    }

    fn hold(&self, held: Held) {
        self.known.send_modify(|known| {
            let first = match known.unbroken {
                Some((first, last)) if last == held.epoch || last + 1 == held.epoch => first,
                _ => held.epoch,
            };
            *known = Known { held: Some(held), unbroken: Some((first, held.epoch)) };
        });
    }

    /// The lease is over, or was given up. Nobody else need have it.
    fn let_go(&self) {
        self.known.send_modify(|known| known.held = None);
    }

    /// Somebody else has the authority.
    fn pass_on(&self) {
        self.known.send_modify(|known| *known = Known::default());
    }

    /// A write was refused as fenced: this term has ended.
    pub(crate) fn lost(&self, epoch: u64) {
        if self.forget(epoch) {
            tracing::warn!(owner = %self.owner, epoch, "authority lost");
        }
    }

    /// Not a later one that was acquired meanwhile.
    fn forget(&self, epoch: u64) -> bool {
        self.known.send_if_modified(|known| known.held.take_if(|held| held.epoch == epoch).is_some())
    }
}

/// Work that was begun under one term of the authority.
struct Term {
    authority: Authority,
    engine: Engine,
    fence: Fence,
}

#[async_trait]
impl Claim for Term {
    fn standing(&self) -> Standing {
        self.authority.standing(self.fence, self.engine.clock().elapsed())
    }

    async fn settled(&self) -> bool {
        let mut changes = self.authority.known.subscribe();
        loop {
            changes.mark_unchanged();
            match self.standing() {
                Standing::Held => return true,
                Standing::PassedOn => return false,
                Standing::InDoubt => {}
            }
            // The loop may be in the middle of a pause.
            self.engine.wake().authority.notify_one();
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() { return false },
                // Whoever starts next finds it.
                () = self.engine.shutdown().triggered() => return false,
            }
        }
    }
}

/// `stop` is later than the engine's own end: while attempts drain, the authority is kept, so that nobody takes them over.
pub(crate) async fn run(engine: Engine, authority: Authority, stop: Shutdown) {
    let lease = Duration::from_millis(engine.config().authority.lease_ms);
    loop {
        let began = engine.clock().elapsed();
        let every = match step(&engine, &authority, lease).await {
            // From one renewal to the next, however long they take: two may fail before the lease ends.
            Step::Held => lease / 3,
            Step::Again => lease / 15,
            // A free authority is looked for a little less often than it can expire.
            Step::Without => lease / 5,
        };
        let wait = every.saturating_sub(engine.clock().elapsed().saturating_sub(began)).max(lease / 30);
        if !super::pause(engine.clock().as_ref(), &stop, &engine.wake().authority, wait).await {
            break;
        }
    }
}

/// How a try went.
enum Step {
    Held,
    /// The store did not answer, and the lease is not over.
    Again,
    Without,
}

async fn step(engine: &Engine, authority: &Authority, lease: Duration) -> Step {
    let asked_at = engine.clock().elapsed();
    let before = authority.held();
    let held = before.filter(|held| asked_at < held.until);
    let result = match held {
        // A renewal that hangs must leave time for another one. It may still come through: that does no harm.
        Some(_) => tokio::select! {
            biased;
            result = ask(engine, authority, held, lease) => result,
            () = engine.clock().sleep(lease / 3) => {
                let detail = "the renewal of the authority takes too long".to_owned();
                Err(servo_store::Error::Unavailable { detail, maybe_written: true })
            }
        },
        None => ask(engine, authority, held, lease).await,
    };
    // By the store's clock the lease is over, as after a step of it; or somebody else has it, who then says so.
    let result = match result {
        Err(servo_store::Error::AuthorityNotHeld { .. }) => ask(engine, authority, None, lease).await,
        result => result,
    };
    match result {
        Ok(epoch) => {
            // The lease runs from the moment of asking, so this node never believes in it longer than the store does.
            authority.hold(Held { epoch, until: asked_at.saturating_add(lease) });
            if before.is_none_or(|before| before.epoch != epoch) {
                tracing::info!(owner = %authority.owner, epoch, "authority acquired");
                engine.wake().dispatch.notify_one();
                engine.wake().queue.notify_one();
                engine.wake().timers.notify_one();
                engine.wake().replay.notify_one();
                engine.wake().log_grew();
            }
            Step::Held
        }
        // The lease stands as long as it was given for, whatever became of this try: its end is not moved.
        Err(error) if error.retry() == Retry::Later && held.is_some_and(|h| engine.clock().elapsed() < h.until) => {
            tracing::warn!(owner = %authority.owner, %error, "authority not renewed yet");
            Step::Again
        }
        Err(error) => {
            if before.is_some() {
                tracing::warn!(owner = %authority.owner, %error, "authority not renewed, stepping down");
            }
            match error {
                servo_store::Error::AuthorityHeld { .. } => authority.pass_on(),
                _ => authority.let_go(),
            }
            Step::Without
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
    let Some(Held { epoch, .. }) = authority.held() else { return };
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

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn held(epoch: u64, until: Duration) -> Held {
        Held { epoch, until }
    }

    /// Work is this node's while its lease lasts, and after that only if nobody else has had the authority since.
    #[test]
    fn work_stays_with_a_node_until_another_has_had_the_authority() {
        let authority = Authority::new("a");
        let standing = |epoch, at| authority.standing(Fence { epoch }, at);
        assert_eq!(standing(1, S), Standing::PassedOn, "it never was");
        authority.hold(held(1, 3 * S));
        assert_eq!(standing(1, 2 * S), Standing::Held);
        assert_eq!(standing(1, 3 * S), Standing::InDoubt, "paused across the end of the lease");
        assert_eq!(authority.fence(3 * S), None);
        authority.let_go();
        assert_eq!(standing(1, 2 * S), Standing::InDoubt, "not renewed: nobody else is known to have it");
        authority.hold(held(2, 9 * S));
        assert_eq!((standing(1, 4 * S), standing(2, 4 * S)), (Standing::Held, Standing::Held), "its own next term");
        assert_eq!(standing(3, 4 * S), Standing::PassedOn, "not its own");
        authority.hold(held(4, 19 * S));
        assert_eq!(
            (standing(2, 10 * S), standing(4, 10 * S)),
            (Standing::PassedOn, Standing::Held),
            "another's was third"
        );
        authority.pass_on();
        assert_eq!(standing(4, 10 * S), Standing::PassedOn);
    }

    /// The control: who does not look at the end of a lease goes on.
    #[test]
    fn a_node_that_trusts_never_doubts() {
        let authority = Authority::new("a").trusting(true);
        authority.hold(held(1, S));
        assert_eq!(authority.standing(Fence { epoch: 1 }, 9 * S), Standing::Held);
    }
}
