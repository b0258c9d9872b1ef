//! Refused requests cost nothing to send, so their entries are limited: so many a minute for each caller or source, and
//! the rest of that minute is one entry with a count. Whoever floods the server fills neither the disk nor the memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use servo_model::{AuditEntry, Timestamp};

const MINUTE_MS: i64 = 60_000;

/// Per minute, and at once.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Entries of one caller or source.
    each: u64,
    /// Entries of all of them.
    all: u64,
    /// Callers or sources that are told apart; the others share a place.
    places: usize,
}

/// With good credentials: there are only so many.
const KNOWN: Limits = Limits { each: 60, all: 6_000, places: 1_000 };
/// Anybody who reaches the port.
const UNKNOWN: Limits = Limits { each: 10, all: 100, places: 50 };

#[derive(Debug, Default)]
pub(super) struct Throttle {
    known: Mutex<Group>,
    unknown: Mutex<Group>,
}

#[derive(Debug, Default)]
struct Group {
    minute: i64,
    written: u64,
    places: HashMap<String, Place>,
}

#[derive(Debug, Default)]
struct Place {
    written: u64,
    /// The latest that was only counted, and how many.
    counted: Option<AuditEntry>,
}

impl Throttle {
    /// The entry, if it may be written; else it is counted.
    pub(super) fn admit(&self, entry: AuditEntry) -> Option<AuditEntry> {
        let (group, limits, key) = self.group_of(&entry);
        lock(group).admit(entry, &key, limits)
    }

    /// Who is limited together, and by whose name in there.
    fn group_of(&self, entry: &AuditEntry) -> (&Mutex<Group>, Limits, String) {
        if entry.actor.is_empty() {
            (&self.unknown, UNKNOWN, entry.source.clone().unwrap_or_default())
        } else {
            (&self.known, KNOWN, entry.actor.clone())
        }
    }

    /// Counts one that was admitted and found no room further on.
    pub(super) fn count(&self, entry: AuditEntry) {
        let (group, limits, key) = self.group_of(&entry);
        lock(group).place(&key, limits.places).add(entry);
    }

    /// Entries for what was counted in minutes that are over; `None` stands for all minutes.
    pub(super) fn drain(&self, now: Option<Timestamp>) -> Vec<AuditEntry> {
        let mut drained = lock(&self.known).drain(now);
        drained.append(&mut lock(&self.unknown).drain(now));
        drained
    }
}

fn lock(group: &Mutex<Group>) -> MutexGuard<'_, Group> {
    group.lock().unwrap_or_else(PoisonError::into_inner)
}

fn minute(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(MINUTE_MS)
}

impl Group {
    fn place(&mut self, key: &str, places: usize) -> &mut Place {
        // The shared place has a name that no caller and no address has.
        let key = if self.places.len() < places || self.places.contains_key(key) { key } else { "*" };
        self.places.entry(key.to_owned()).or_default()
    }

    fn admit(&mut self, entry: AuditEntry, key: &str, limits: Limits) -> Option<AuditEntry> {
        if minute(entry.at) != self.minute {
            self.minute = minute(entry.at);
            self.written = 0;
            self.places.values_mut().for_each(|place| place.written = 0);
            self.places.retain(|_, place| place.counted.is_some());
        }
        let has_room = self.written < limits.all;
        let place = self.place(key, limits.places);
        if has_room && place.written < limits.each {
            place.written += 1;
            self.written += 1;
            return Some(entry);
        }
        place.add(entry);
        None
    }

    fn drain(&mut self, now: Option<Timestamp>) -> Vec<AuditEntry> {
        let is_over = |entry: &AuditEntry| now.is_none_or(|now| minute(entry.at) < minute(now));
        let due = self.places.values_mut().filter(|place| place.counted.as_ref().is_some_and(is_over));
        due.filter_map(|place| place.counted.take()).collect()
    }
}

impl Place {
    fn add(&mut self, entry: AuditEntry) {
        let count = self.counted.as_ref().map_or(0, |counted| counted.count) + entry.count;
        self.counted = Some(AuditEntry { count, ..entry });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::{AuditOutcome, EventId, TenantId};

    fn entry(ms: i64, actor: &str, source: &str) -> AuditEntry {
        AuditEntry {
            id: EventId::from_u128(u128::try_from(ms).unwrap()),
            at: Timestamp::from_millis(ms),
            tenant_id: TenantId::system(),
            actor: actor.to_owned(),
            roles: Vec::new(),
            action: "run.start".to_owned(),
            object_kind: "run".to_owned(),
            object_id: String::new(),
            outcome: AuditOutcome::Denied,
            correlation_id: "c".to_owned(),
            reason: None,
            source: Some(source.to_owned()),
            count: 1,
        }
    }

    /// SR-538, S16: a flood of requests without credentials becomes a few entries, and each request is counted.
    #[test]
    fn a_flood_is_counted() {
        let throttle = Throttle::default();
        let written =
            (0..100_000).filter(|n| throttle.admit(entry(n % 1_000, "", &format!("10.0.0.{}", n % 250))).is_some());
        let written = written.count() as u64;
        assert!(written <= UNKNOWN.all, "{written}");
        assert!(throttle.drain(Some(Timestamp::from_millis(59_999))).is_empty(), "the minute is not over");
        let counted = throttle.drain(Some(Timestamp::from_millis(60_000)));
        assert!(counted.len() <= UNKNOWN.places + 1);
        assert_eq!(written + counted.iter().map(|entry| entry.count).sum::<u64>(), 100_000);
        assert!(throttle.drain(None).is_empty());
    }

    #[test]
    fn one_flood_hides_no_other_caller() {
        let throttle = Throttle::default();
        for n in 0..1_000 {
            throttle.admit(entry(n, "key_flood", "10.0.0.1"));
            throttle.admit(entry(n, "", "10.0.0.1"));
        }
        assert!(throttle.admit(entry(1_000, "key_other", "10.0.0.1")).is_some());
        assert!(throttle.admit(entry(1_000, "", "10.0.0.2")).is_some());
        assert!(throttle.admit(entry(61_000, "key_flood", "10.0.0.1")).is_some(), "another minute");
        let flood = throttle.drain(None).into_iter().find(|entry| entry.actor == "key_flood").unwrap();
        assert_eq!(flood.count, 1_000 - KNOWN.each);
    }
}
