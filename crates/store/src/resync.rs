//! Reading a run again, in both modes of the contract. Built on what every backend has.

use servo_model::projection::Resync;
use servo_model::{Event, RunId, RunState};

use crate::Store;
use crate::error::{Error, Result};
use crate::log::StoredRun;
use crate::runs::Scope;

/// Events read per page: large enough to be quick, small enough for memory.
const PAGE: u32 = 1_000;

/// A state to start from and the events after it.
#[derive(Debug)]
pub struct Reread {
    pub base: RunState,
    pub events: Vec<Event>,
    pub head_seq: u64,
}

/// `FULL` gives every event; `FROM_SNAPSHOT` gives the latest stored snapshot at or before the sequence and what
/// follows it, and is `FULL` where there is none.
pub async fn resync(store: &dyn Store, scope: &Scope, run_id: &RunId, mode: Resync) -> Result<Reread> {
    let base = base_state(store, scope, run_id, mode).await?;
    let mut events = Vec::new();
    let mut after = base.last_event_seq;
    loop {
        let page = store.read_run(scope, run_id, after, PAGE).await?;
        for stored in &page.events {
            events.push(decode(stored)?);
        }
        match page.events.last() {
            Some(last) if last.run_seq < page.head_seq => after = last.run_seq,
            _ => return Ok(Reread { base, events, head_seq: page.head_seq }),
        }
    }
}

/// The folded state of a run.
pub async fn load_state(store: &dyn Store, scope: &Scope, run_id: &RunId) -> Result<RunState> {
    let stored = load(store, scope, run_id).await?;
    fold(store, scope, stored).await
}

/// A run's row, and where `fold` begins.
pub async fn load(store: &dyn Store, scope: &Scope, run_id: &RunId) -> Result<StoredRun> {
    store.load_run(scope, run_id, PAGE).await
}

/// The folded state of a run that was loaded, a page at a time: a long history is never in memory at once.
pub async fn fold(store: &dyn Store, scope: &Scope, stored: StoredRun) -> Result<RunState> {
    let StoredRun { row, snapshot, page } = stored;
    let mut next = Some(page);
    let mut state = RunState::new(row.run_id.clone());
    if let Some(snapshot) = snapshot {
        // One that this version cannot read is only a lost short cut: the log has everything, and is read from its beginning.
        if let Ok(read) = serde_json::from_str(&snapshot.state) {
            state = read;
        }
        if state.last_event_seq != snapshot.run_seq {
            next = None;
        }
    }
    loop {
        let page = match next.take() {
            Some(page) => page,
            None => store.read_run(scope, &row.run_id, state.last_event_seq, PAGE).await?,
        };
        for stored in &page.events {
            state.advance(&decode(stored)?);
        }
        if page.events.is_empty() || state.last_event_seq >= page.head_seq {
            return Ok(state);
        }
    }
}

async fn base_state(store: &dyn Store, scope: &Scope, run_id: &RunId, mode: Resync) -> Result<RunState> {
    let seq_max = match mode {
        Resync::Full => return Ok(RunState::new(run_id.clone())),
        Resync::FromSnapshot { snapshot_seq } => snapshot_seq,
    };
    let stored = store.snapshot_at(scope, run_id, seq_max).await?;
    // A snapshot that this version cannot read is only a lost short cut: the log has everything.
    let state = stored.and_then(|snapshot| serde_json::from_str::<RunState>(&snapshot.state).ok());
    Ok(state.unwrap_or_else(|| RunState::new(run_id.clone())))
}

fn decode(stored: &crate::StoredEvent) -> Result<Event> {
    stored.decode().map_err(|invalid| Error::Corrupt {
        detail: format!("event {} of run {}: {invalid}", stored.run_seq, stored.run_id),
    })
}
