//! Counts what is under way, in units: places, bytes. There is a bound for all, and one for each scope (a tenant, an address),
//! so that no scope takes what the others need.
//!
//! What a scope may hold shrinks as the whole fills up. With `T` for all, `s` for one scope and `f` free after it was given:
//! it may hold `h` while `h * (T - s) <= s * f`. From that follow the rules that the tests hold it to:
//!
//! - A scope that is alone may hold exactly `s`.
//! - However many scopes take all they can, something is left for the next: the last free unit goes only to a scope that
//!   holds nothing. Where each takes all it can before the next one comes, `n` scopes leave `T * ((T - s) / T)^n`; as they
//!   give back and take again, they even out, and leave `T * (T - s) / (T + (n - 1) * s)`.
//! - A scope that holds nothing may always take what is free, up to `s`.
//!
//! Nothing waits in here. Whoever is refused says so to its caller, or comes again later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of all scopes together.
    pub total: usize,
    /// Of one scope, while the others hold nothing. As much as the total means that scopes have no rooms of their own.
    pub scope: usize,
}

impl Bounds {
    /// One scope may have three quarters of the whole while the others hold nothing.
    pub fn shared(total: usize) -> Self {
        Self { total, scope: total - total / 4 }
    }

    /// The same with what one scope may hold, where it is said.
    pub fn with_scope(self, scope: Option<usize>) -> Self {
        Self { scope: scope.map_or(self.scope, |scope| scope.min(self.total)), ..self }
    }
}

/// Which bound is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All scopes together hold what may be held.
    Total,
    /// This scope holds what it may; others may still find room.
    Scope,
}

/// A handle on one count: cheap to clone, and the same from every thread.
#[derive(Debug)]
pub struct Counter<S: Ord + Clone>(Arc<Shared<S>>);

#[derive(Debug)]
struct Shared<S> {
    bounds: Bounds,
    counts: Mutex<Counts<S>>,
}

#[derive(Debug)]
struct Counts<S> {
    used: usize,
    /// Scopes that hold something, and no others.
    scopes: BTreeMap<S, usize>,
}

/// What is held; given back when it is dropped.
#[derive(Debug)]
pub struct Held<S: Ord + Clone> {
    counter: Counter<S>,
    scope: S,
    amount: usize,
}

impl<S: Ord + Clone> Clone for Counter<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Ord + Clone> Counter<S> {
    pub fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Shared { bounds, counts: Mutex::new(Counts { used: 0, scopes: BTreeMap::new() }) }))
    }

    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// Takes so many units for a scope, or none.
    pub fn take(&self, scope: &S, amount: usize) -> Result<Held<S>, Full> {
        self.add(scope, amount)?;
        Ok(Held { counter: self.clone(), scope: scope.clone(), amount })
    }

    /// What all scopes hold.
    pub fn used(&self) -> usize {
        self.counts().used
    }

    /// What one scope holds.
    pub fn used_by(&self, scope: &S) -> usize {
        self.counts().scopes.get(scope).copied().unwrap_or(0)
    }

    fn counts(&self) -> MutexGuard<'_, Counts<S>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, scope: &S, amount: usize) -> Result<(), Full> {
        if amount == 0 {
            return Ok(());
        }
        let mut counts = self.counts();
        let held = counts.scopes.get(scope).copied().unwrap_or(0);
        may_take(self.0.bounds, counts.used, held, amount)?;
        counts.used += amount;
        match counts.scopes.get_mut(scope) {
            Some(held) => *held += amount,
            None => {
                counts.scopes.insert(scope.clone(), amount);
            }
        }
        Ok(())
    }

    fn remove(&self, scope: &S, amount: usize) {
        if amount == 0 {
            return;
        }
        let mut counts = self.counts();
        counts.used = counts.used.saturating_sub(amount);
        if let Some(held) = counts.scopes.get_mut(scope) {
            *held = held.saturating_sub(amount);
            if *held == 0 {
                counts.scopes.remove(scope);
            }
        }
    }
}

/// Whether a scope that holds so much, of what is used by all, may take so much more.
fn may_take(bounds: Bounds, used: usize, held: usize, amount: usize) -> Result<(), Full> {
    let Bounds { total, scope } = bounds;
    let after = held.checked_add(amount).filter(|after| *after <= scope).ok_or(Full::Scope)?;
    let free = used.checked_add(amount).and_then(|used| total.checked_sub(used)).ok_or(Full::Total)?;
    let product = |a: usize, b: usize| a as u128 * b as u128;
    let greedy = held > 0 && product(after, total.saturating_sub(scope)) > product(scope, free);
    if greedy { Err(Full::Scope) } else { Ok(()) }
}

impl<S: Ord + Clone> Held<S> {
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Takes so many more, or none.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        self.counter.add(&self.scope, more)?;
        self.amount += more;
        Ok(())
    }

    /// Gives so many back, at most what is held.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.amount);
        self.counter.remove(&self.scope, less);
        self.amount -= less;
    }
}

impl<S: Ord + Clone> Drop for Held<S> {
    fn drop(&mut self) {
        self.counter.remove(&self.scope, self.amount);
    }
}
