//! Appends that say at which sequence they expect their runs, which are nearly all: one exchange for a whole batch. It is
//! judged as if everything were as expected, and the database looks whether it is before it writes. If anything is not,
//! nothing is written, and nothing is answered from here: those appends are judged on what there is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use servo_model::contract::DispatchState;
use servo_model::limits::INLINE_PAYLOAD_BYTES_MAX;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::QueueChange;
use servo_store::{Append, Appended, AuthorityRow, DispatchChange, DispatchRow, Expected, Result, StreamAppend};

use super::judge::{RunView, World};
use super::load;
use super::writes::Writes;
use crate::error::{Phase, corrupt};
use crate::pipeline::{Failed, Pipeline};
use crate::rows;
use crate::sql::expected::{self, Changes, Conditions};
use crate::store::Core;

/// What came of it.
pub(super) struct Tried {
    /// For each append its answer, or `None` if it is still to be judged.
    pub(super) answers: Vec<Option<Result<Appended>>>,
    /// Somebody has a lock for longer than one transaction waits for it.
    pub(super) waited_in_vain: bool,
}

pub(super) async fn commit(core: &Core, appends: &[Append]) -> Tried {
    let mut tried = Tried { answers: appends.iter().map(|_| None).collect(), waited_in_vain: false };
    let assumed = Assumed::of(appends, core);
    if assumed.taken.is_empty() {
        return tried;
    }
    let (written, taken) = write(core, assumed, &mut tried.waited_in_vain).await;
    for (index, appended) in taken {
        tried.answers[index] = match &written {
            Ok(Some(now)) => Some(Ok(at(appended, *now))),
            Ok(None) => None,
            Err(error) => Some(Err(error.clone())),
        };
    }
    tried
}

/// The time at which all of it was written; `None` if nothing was, because something was not as expected.
async fn write(
    core: &Core,
    assumed: Assumed<'_>,
    waited_in_vain: &mut bool,
) -> (Result<Option<Timestamp>>, Vec<(usize, Appended)>) {
    let Assumed { writes, conditions, before, withdrawn, taken, .. } = assumed;
    let (mut added, mut moved) = (Vec::new(), Vec::new());
    for (id, row) in &writes.dispatches {
        match before.get(id) {
            Some(before) => moved.push((*before, row)),
            None => added.push(row),
        }
    }
    let Writes { new_runs, events, rows, timers, counts, .. } = &writes;
    let seals = core.seals;
    let changes = Changes { new_runs, events, seals, rows, timers, withdrawn: &withdrawn, added, moved, counts };
    let mut pipeline = Pipeline::new();
    // One statement that commits by itself: it costs the server one answer and this side one wake-up, where a commit of its own
    // takes three of each. The answer is whole only after the commit, and an error says that there was none.
    let call = match expected::append(&mut pipeline, conditions, core.injected_now(), &changes) {
        Ok(call) => call,
        Err(error) => return (Err(error), taken),
    };
    let connection = match core.pools.borrow(&core.pools.append).await {
        Ok(connection) => connection,
        Err(error) => return (Err(error), taken),
    };
    crashpoint!("postgres.append.before_begin");
    let written = match connection.send(pipeline).await {
        Ok(answers) => {
            crashpoint!("postgres.append.after_commit");
            connection.release();
            let row = answers[call].rows.first();
            row.map_or_else(|| Err(corrupt("the time is missing")), |row| rows::time(row, "now").map(Some))
        }
        Err(Failed { failure, .. }) if failure.is_refusal() => {
            connection.release();
            *waited_in_vain = failure.is_lock_timeout();
            if !failure.is_expectation() && !failure.is_shortage() {
                // Slower, and as right as ever; but if it stays so, somebody should look.
                tracing::warn!(state = failure.code(), "an append in one call was refused, and is judged instead");
            }
            if failure.is_shortage() { Err(failure.into_error(Phase::Open)) } else { Ok(None) }
        }
        Err(Failed { was_sent: false, .. }) => Ok(None),
        Err(failed) => Err(failed.into_error(call)),
    };
    (written, taken)
}

fn at(mut appended: Appended, now: Timestamp) -> Appended {
    for event in appended.streams.iter_mut().flat_map(|stream| &mut stream.events) {
        event.emitted_at = now;
    }
    appended
}

/// Appends of a batch, judged as if everything were as expected.
struct Assumed<'a> {
    world: World,
    writes: Writes<'a>,
    conditions: Conditions<'a>,
    /// The states in which dispatches must be that are moved.
    before: HashMap<&'a str, DispatchState>,
    /// Dispatches that may be there, with their tenants.
    withdrawn: BTreeMap<&'a str, &'a TenantId>,
    /// By their index, with their answers but for the time.
    taken: Vec<(usize, Appended)>,
}

impl<'a> Assumed<'a> {
    fn of(appends: &'a [Append], core: &Core) -> Self {
        let world = World {
            now: Timestamp::EPOCH,
            events_max: core.limits.events_per_run_max,
            authority: None,
            runs: HashMap::new(),
            requests: HashMap::new(),
            dispatches: HashMap::new(),
        };
        let conditions = Conditions { tenants: String::new(), locks: Vec::new(), fence: None, heads: BTreeMap::new() };
        let (writes, before, withdrawn) = (Writes::default(), HashMap::new(), BTreeMap::new());
        let mut assumed = Self { world, writes, conditions, before, withdrawn, taken: Vec::new() };
        // Whether a lease has expired is for the clock to say that runs when the locks are held. A given time may be old by then.
        let is_timely = core.injected_now().is_none();
        let mut touched = BTreeSet::new();
        for (index, append) in appends.iter().enumerate() {
            // Two appends to one run, and two streams of one append, are judged one after the other.
            let runs: Vec<&RunId> = append.streams.iter().map(|stream| &stream.run_id).collect();
            let is_first = runs.iter().all(|run| touched.insert(*run));
            if is_first && is_plain(append) && (is_timely || append.fence.is_none()) {
                assumed.take(index, append);
            }
        }
        let taken: Vec<&Append> = assumed.taken.iter().map(|(index, _)| &appends[*index]).collect();
        assumed.conditions.tenants = load::tenants(&taken);
        assumed.conditions.locks = load::locks(&taken);
        assumed
    }

    fn take(&mut self, index: usize, append: &'a Append) {
        if let Some(fence) = append.fence {
            match self.conditions.fence {
                Some(epoch) if epoch != fence.epoch => return,
                Some(_) => {}
                None => self.world.authority = Some(held(fence.epoch)),
            }
        }
        for stream in &append.streams {
            if let Expected::Seq(head) = stream.expected {
                let (tenant, keys) = (stream.tenant.clone(), HashMap::new());
                let view = RunView { tenant, head, keys, queue_owner: None, counted: None };
                self.world.runs.insert(stream.run_id.clone(), view);
            }
            for change in moves(stream) {
                self.world.dispatches.insert(change.request_id().to_owned(), unmoved(stream, change));
            }
        }
        // What is refused on these grounds may still be right on others.
        let Ok(appended) = self.world.judge(append, &mut self.writes) else { return };
        self.taken.push((index, appended));
        self.conditions.fence = append.fence.map(|fence| fence.epoch).or(self.conditions.fence);
        for stream in &append.streams {
            if let Expected::Seq(head) = stream.expected {
                self.conditions.heads.insert(&stream.run_id, (&stream.tenant, head));
            }
            self.before.extend(moves(stream).map(|change| (change.request_id(), state_before(change))));
            let withdrawn = stream.dispatches.iter().filter(|change| is_withdrawn(change));
            self.withdrawn.extend(withdrawn.map(|change| (change.request_id(), &stream.tenant)));
        }
    }
}

/// Whether the database can look at all that matters.
fn is_plain(append: &Append) -> bool {
    append.authority.is_none() && append.cursors.is_empty() && append.streams.iter().all(is_plain_stream)
}

fn is_plain_stream(stream: &StreamAppend) -> bool {
    let is_new = stream.expected == Expected::New;
    !stream.run_id.is_system()
        && stream.expected != Expected::Any
        && stream.queue == QueueChange::Keep
        && stream.snapshot.is_none()
        && stream.events.iter().all(|event| event.payload.len() <= INLINE_PAYLOAD_BYTES_MAX)
        // An invocation is counted where it was.
        && (is_new || stream.row.as_ref().is_none_or(|row| !row.invocation))
        && has_plain_dispatches(stream)
}

/// Each dispatch is queued, or moved or withdrawn once, or queued and handed out at once.
fn has_plain_dispatches(stream: &StreamAppend) -> bool {
    let mut seen = BTreeMap::new();
    stream.dispatches.iter().all(|change| {
        let earlier = seen.insert(change.request_id(), change);
        match change {
            DispatchChange::Queue { .. }
            | DispatchChange::Deliver { .. }
            | DispatchChange::Fail { .. }
            | DispatchChange::Withdraw { .. } => earlier.is_none(),
            DispatchChange::Notify { .. } => earlier.is_none_or(is_queued),
            DispatchChange::Adopt { .. } => false,
        }
    })
}

fn is_queued(change: &DispatchChange) -> bool {
    matches!(change, DispatchChange::Queue { .. })
}

/// Whether it goes if it is there: the judgement, which knows of none, leaves it to the database.
fn is_withdrawn(change: &DispatchChange) -> bool {
    matches!(change, DispatchChange::Withdraw { .. })
}

/// Changes of dispatches that must be there already.
fn moves(stream: &StreamAppend) -> impl Iterator<Item = &DispatchChange> {
    let queued: BTreeSet<_> =
        stream.dispatches.iter().filter(|change| is_queued(change)).map(DispatchChange::request_id).collect();
    let moved = move |change: &&DispatchChange| !is_withdrawn(change) && !queued.contains(change.request_id());
    stream.dispatches.iter().filter(moved)
}

fn state_before(change: &DispatchChange) -> DispatchState {
    if matches!(change, DispatchChange::Notify { .. }) { DispatchState::Pending } else { DispatchState::Notified }
}

/// A dispatch as it must be before it is moved. Nothing of it is written but the move.
fn unmoved(stream: &StreamAppend, change: &DispatchChange) -> DispatchRow {
    DispatchRow {
        request_id: change.request_id().to_owned(),
        run_id: stream.run_id.clone(),
        tenant: stream.tenant.clone(),
        target: String::new(),
        step: None,
        state: state_before(change),
        channel: None,
        reason: None,
        epoch: 0,
        queued_at: Timestamp::EPOCH,
        changed_at: Timestamp::EPOCH,
    }
}

/// An authority as it must be.
fn held(epoch: u64) -> AuthorityRow {
    AuthorityRow {
        owner: String::new(),
        lease_id: String::new(),
        leased_until: String::new(),
        leased_until_at: Timestamp::MAX,
        epoch,
        resigned: false,
    }
}
