//! Which connections are open, and which one is closed when another one comes and there is no place.
//!
//! A connection is fresh until its first request has come, then busy with requests or idle between them. Fresh ones have a share
//! of the places: one more closes the oldest of them. When all places are taken, the oldest fresh one makes room, or else the one
//! that has been idle for longest. So unfinished requests and idle connections keep nobody out. When all places are busy, the new
//! connection is beyond: there are a few places more, for as long as it takes to answer a probe or to say no, and the oldest of
//! those that have not asked anything makes room, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections with a place.
    pub places: usize,
    /// Those of them that may be fresh.
    pub fresh: usize,
    /// Connections beyond.
    pub beyond: usize,
}

/// The open connections, by a handle with which each is told to end.
#[derive(Debug)]
pub struct Connections<C>(Arc<Shared<C>>);

#[derive(Debug)]
struct Shared<C> {
    bounds: Bounds,
    open: Mutex<Open<C>>,
}

#[derive(Debug)]
struct Open<C> {
    next: u64,
    places: Room<C>,
    beyond: Room<C>,
}

/// Those with a place, or those beyond; each list with the oldest first.
#[derive(Debug)]
struct Room<C> {
    taken: usize,
    fresh: BTreeMap<u64, C>,
    idle: BTreeMap<u64, C>,
}

/// A new connection.
#[derive(Debug)]
pub struct Arrived<C: Clone> {
    pub place: Place<C>,
    /// What makes room for it.
    pub ended: Option<C>,
}

/// The place of one connection; given back when it is dropped.
#[derive(Debug)]
pub struct Place<C: Clone> {
    connections: Connections<C>,
    handle: C,
    is_beyond: bool,
    standing: Mutex<Standing>,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    /// In the list of fresh or idle ones, under this number.
    listed: Option<u64>,
    was_heard: bool,
    requests: usize,
}

impl<C> Clone for Connections<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Room<C> {
    fn new() -> Self {
        Self { taken: 0, fresh: BTreeMap::new(), idle: BTreeMap::new() }
    }

    /// Ends the oldest fresh connection. Its place is free at once.
    fn end_fresh(&mut self) -> Option<C> {
        let (_, oldest) = self.fresh.pop_first()?;
        self.taken -= 1;
        Some(oldest)
    }

    fn end_idle(&mut self) -> Option<C> {
        let (_, oldest) = self.idle.pop_first()?;
        self.taken -= 1;
        Some(oldest)
    }
}

impl<C: Clone> Connections<C> {
    pub fn new(bounds: Bounds) -> Self {
        let open = Open { next: 0, places: Room::new(), beyond: Room::new() };
        Self(Arc::new(Shared { bounds, open: Mutex::new(open) }))
    }

    /// Connections with a place.
    pub fn taken(&self) -> usize {
        self.open().places.taken
    }

    /// Takes a new connection in. `None` if all are busy, also those beyond; it is closed without a word.
    pub fn arrive(&self, handle: C) -> Option<Arrived<C>> {
        let mut open = self.open();
        let (bounds, open) = (self.0.bounds, &mut *open);
        let mut ended = None;
        if open.places.fresh.len() >= bounds.fresh.max(1) {
            ended = open.places.end_fresh();
        } else if open.places.taken >= bounds.places {
            ended = open.places.end_fresh().or_else(|| open.places.end_idle());
        }
        let is_beyond = open.places.taken >= bounds.places;
        if is_beyond && open.beyond.taken >= bounds.beyond {
            ended = Some(open.beyond.end_fresh().or_else(|| open.beyond.end_idle())?);
        }
        open.next += 1;
        let room = if is_beyond { &mut open.beyond } else { &mut open.places };
        room.taken += 1;
        room.fresh.insert(open.next, handle.clone());
        let standing = Standing { listed: Some(open.next), was_heard: false, requests: 0 };
        let place = Place { connections: self.clone(), handle, is_beyond, standing: Mutex::new(standing) };
        Some(Arrived { place, ended })
    }

    fn open(&self) -> MutexGuard<'_, Open<C>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clone> Place<C> {
    /// Whether only probes are answered.
    pub fn is_beyond(&self) -> bool {
        self.is_beyond
    }

    /// Whether a request has come.
    pub fn was_heard(&self) -> bool {
        self.standing().was_heard
    }

    /// A request came.
    pub fn begin(&self) {
        let mut standing = self.standing();
        standing.was_heard = true;
        standing.requests += 1;
        // One that was told to end meanwhile is in no list, and has no place any more; what it has begun is answered.
        if let Some(number) = standing.listed
            && self.unlist(number)
        {
            standing.listed = None;
        }
    }

    /// It was answered.
    pub fn end(&self) {
        let mut standing = self.standing();
        standing.requests = standing.requests.saturating_sub(1);
        if standing.requests == 0 && standing.listed.is_none() {
            let mut open = self.connections.open();
            open.next += 1;
            let number = open.next;
            self.room(&mut open).idle.insert(number, self.handle.clone());
            standing.listed = Some(number);
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room<'a>(&self, open: &'a mut Open<C>) -> &'a mut Room<C> {
        if self.is_beyond { &mut open.beyond } else { &mut open.places }
    }

    /// False if it was taken off its list by another.
    fn unlist(&self, number: u64) -> bool {
        let mut open = self.connections.open();
        let room = self.room(&mut open);
        room.fresh.remove(&number).or_else(|| room.idle.remove(&number)).is_some()
    }
}

impl<C: Clone> Drop for Place<C> {
    fn drop(&mut self) {
        let listed = self.standing().listed;
        if listed.is_none_or(|number| self.unlist(number)) {
            let mut open = self.connections.open();
            let room = self.room(&mut open);
            room.taken = room.taken.saturating_sub(1);
        }
    }
}
