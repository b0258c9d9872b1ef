//! What may go wrong with a call to the store, and who decides about it.
//!
//! A plan is asked once per call. It knows the call's number and name, never its contents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use servo_model::RunId;

/// One way in which a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The store does not answer and has done nothing.
    Unavailable,
    /// The store has done it, and the answer is lost.
    ExecuteThenUnavailable,
    /// The answer is lost, and the store does it a while later.
    UnavailableThenExecute,
    /// Somebody else was first. Only where a call can say so.
    Conflict,
    /// No space left. Only for writes.
    Full,
}

impl Fault {
    pub const ALL: [Fault; 5] = [
        Fault::Unavailable,
        Fault::ExecuteThenUnavailable,
        Fault::UnavailableThenExecute,
        Fault::Conflict,
        Fault::Full,
    ];
}

/// A call, as far as plans may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub name: &'static str,
    pub writes: bool,
    /// Whether `Conflict` is an answer that this call can give.
    pub can_conflict: bool,
}

impl Call {
    /// Whether a fault makes sense here: a read has nothing to do later and needs no space.
    pub fn can(self, fault: Fault) -> bool {
        match fault {
            Fault::Unavailable => true,
            Fault::ExecuteThenUnavailable | Fault::UnavailableThenExecute | Fault::Full => self.writes,
            Fault::Conflict => self.can_conflict,
        }
    }
}

/// How one call goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// Milliseconds on the way to the store, and on the way back.
    pub before_ms: u64,
    pub after_ms: u64,
    pub fault: Option<Fault>,
}

pub trait FaultPlan: Send + Sync {
    fn fate(&self, call: Call) -> Fate;

    /// Whether the store finds the run's events damaged when it reads them.
    fn is_damaged(&self, _run_id: &RunId) -> bool {
        false
    }
}

/// Every call succeeds at once.
#[derive(Debug, Default)]
pub struct NoFaults;

impl FaultPlan for NoFaults {
    fn fate(&self, _call: Call) -> Fate {
        Fate::default()
    }
}

/// One call out of a whole story fails: the n-th of those that can fail this way.
#[derive(Debug)]
pub struct NthFails {
    fault: Fault,
    left: AtomicU64,
    on: AtomicBool,
    /// Calls from the n-th on that fail: a short outage instead of one lost answer.
    length: u64,
    fired: AtomicU64,
}

impl NthFails {
    pub fn new(fault: Fault, nth: u64, length: u64) -> Self {
        let (left, fired) = (AtomicU64::new(nth), AtomicU64::new(0));
        Self { fault, left, on: AtomicBool::new(true), length, fired }
    }

    /// Whether the story was long enough for the fault to happen.
    pub fn has_fired(&self) -> bool {
        self.fired.load(Ordering::Relaxed) > 0
    }

    /// The next call that can fail does.
    pub fn begin(&self) {
        self.left.store(1, Ordering::Relaxed);
    }

    pub fn heal(&self) {
        self.on.store(false, Ordering::Relaxed);
    }
}

impl FaultPlan for NthFails {
    fn fate(&self, call: Call) -> Fate {
        if !self.on.load(Ordering::Relaxed) || !call.can(self.fault) {
            return Fate::default();
        }
        if self.left.load(Ordering::Relaxed) > 1 {
            self.left.fetch_sub(1, Ordering::Relaxed);
            return Fate::default();
        }
        let fired = self.fired.fetch_add(1, Ordering::Relaxed);
        Fate { fault: (fired < self.length).then_some(self.fault), ..Fate::default() }
    }
}

/// What a test says about calls by name, until it says something else.
#[derive(Debug, Default)]
pub struct Scripted {
    rules: Mutex<BTreeMap<&'static str, (Fate, u64)>>,
}

impl Scripted {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, (Fate, u64)>> {
        self.rules.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The next so many calls of this name go like this.
    pub fn next(&self, name: &'static str, calls: u64, fate: Fate) {
        self.lock().insert(name, (fate, calls));
    }

    /// Calls of this name fail.
    pub fn fail(&self, name: &'static str, fault: Fault) {
        self.next(name, u64::MAX, Fate { fault: Some(fault), ..Fate::default() });
    }

    /// Calls of this name take so long on the way there.
    pub fn slow(&self, name: &'static str, before_ms: u64) {
        self.next(name, u64::MAX, Fate { before_ms, ..Fate::default() });
    }

    pub fn heal(&self) {
        self.lock().clear();
    }
}

impl FaultPlan for Scripted {
    fn fate(&self, call: Call) -> Fate {
        let mut rules = self.lock();
        let Some((fate, left)) = rules.get_mut(call.name).filter(|(_, left)| *left > 0) else { return Fate::default() };
        *left -= 1;
        let fault = fate.fault.filter(|fault| call.can(*fault));
        Fate { fault, ..*fate }
    }
}

/// Delays and faults drawn from a seed, until healed.
#[derive(Debug)]
pub struct RandomFaults {
    state: Mutex<State>,
    delay_ms: u64,
    /// Faults in a thousand calls.
    per_mille: u64,
    faulty: AtomicBool,
}

#[derive(Debug)]
struct State {
    rng: StdRng,
    fired: BTreeMap<Fault, u64>,
    calls: u64,
}

impl RandomFaults {
    pub fn new(seed: u64, delay_ms: u64, per_mille: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed ^ 0x5ee0_fa17);
        let state = State { rng, fired: BTreeMap::new(), calls: 0 };
        Self { state: Mutex::new(state), delay_ms, per_mille, faulty: AtomicBool::new(true) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// No more faults; delays stay.
    pub fn heal(&self) {
        self.faulty.store(false, Ordering::Relaxed);
    }

    /// How often each fault happened.
    pub fn fired(&self) -> BTreeMap<Fault, u64> {
        self.lock().fired.clone()
    }

    pub fn calls(&self) -> u64 {
        self.lock().calls
    }
}

impl FaultPlan for RandomFaults {
    fn fate(&self, call: Call) -> Fate {
        let mut state = self.lock();
        state.calls += 1;
        // Most calls are quick and a few are slow, as in life.
        let slow = state.rng.random_range(0..50u32) == 0;
        let limit = if slow { self.delay_ms * 40 } else { self.delay_ms };
        let before_ms = state.rng.random_range(0..=limit);
        let after_ms = state.rng.random_range(0..=limit);
        let chosen = Fault::ALL[state.rng.random_range(0..Fault::ALL.len())];
        let hit = state.rng.random_range(0..1_000) < self.per_mille;
        let fault = (hit && self.faulty.load(Ordering::Relaxed) && call.can(chosen)).then_some(chosen);
        if let Some(fault) = fault {
            *state.fired.entry(fault).or_default() += 1;
        }
        Fate { before_ms, after_ms, fault }
    }
}
