//! Refused requests cost nothing to send, so their entries are limited: so many a minute for each caller or source, and
//! the rest of that minute is one entry with a count. Whoever floods the server fills neither the disk nor the memory.
//!
//! What was denied and what failed have places of their own: a caller who makes harmless mistakes by the dozen must not hide behind
//! them what it was not allowed to do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use servo_model::{AuditEntry, AuditOutcome, Timestamp};

const MINUTE_MS: i64 = 60_000;

/// Per minute, and at once.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Entries of one place.
    each: u64,
    /// Entries of one caller, in all its places.
    caller: u64,
    /// Entries of all of them.
    all: u64,
    /// Places that are told apart; the others share one.
    places: usize,
}

/// With good credentials, of which there are only so many. A place for each caller and action, so that the entry with a count says what
/// was denied.
const DENIED: Limits = Limits { each: 30, caller: 120, all: 12_000, places: 4_000 };
/// Mistakes and faults: a place for each caller.
const FAILED: Limits = Limits { each: 60, caller: 60, all: 6_000, places: 1_000 };
/// Anybody who reaches the port.
const UNKNOWN: Limits = Limits { each: 10, caller: 100, all: 100, places: 50 };

#[derive(Debug, Default)]
pub(super) struct Throttle {
    denied: Mutex<Group>,
    failed: Mutex<Group>,
    unknown: Mutex<Group>,
}

#[derive(Debug, Default)]
struct Group {
    minute: i64,
    written: u64,
    /// By caller, of the entries that were written. There are no more of these than entries.
    callers: HashMap<String, u64>,
    places: HashMap<String, Place>,
}

#[derive(Debug, Default)]
struct Place {
    written: u64,
    /// The latest that was only counted, with how many, and the minute of the first of them.
    counted: Option<(i64, AuditEntry)>,
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
        } else if entry.outcome == AuditOutcome::Denied {
            (&self.denied, DENIED, format!("{} {}", entry.action, entry.actor))
        } else {
            (&self.failed, FAILED, entry.actor.clone())
        }
    }

    /// Counts one that was admitted and found no room further on.
    pub(super) fn count(&self, entry: AuditEntry) {
        let (group, limits, key) = self.group_of(&entry);
        lock(group).place(&key, limits.places).add(entry);
    }

    /// Entries for what was counted in minutes that are over; `None` stands for all minutes.
    pub(super) fn drain(&self, now: Option<Timestamp>) -> Vec<AuditEntry> {
        [&self.denied, &self.failed, &self.unknown].into_iter().flat_map(|group| lock(group).drain(now)).collect()
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
            self.callers.clear();
            self.places.values_mut().for_each(|place| place.written = 0);
            self.places.retain(|_, place| place.counted.is_some());
        }
        let of_caller = self.callers.get(&entry.actor).copied().unwrap_or(0);
        let has_room = self.written < limits.all && of_caller < limits.caller;
        let place = self.place(key, limits.places);
        if has_room && place.written < limits.each {
            place.written += 1;
            self.written += 1;
            self.callers.insert(entry.actor.clone(), of_caller + 1);
            return Some(entry);
        }
        place.add(entry);
        None
    }

    fn drain(&mut self, now: Option<Timestamp>) -> Vec<AuditEntry> {
        // Of the first: a flood that goes on must not put its own entry off.
        let is_over = |(first, _): &(i64, AuditEntry)| now.is_none_or(|now| *first < minute(now));
        let due = self.places.values_mut().filter(|place| place.counted.as_ref().is_some_and(is_over));
        due.filter_map(|place| place.counted.take()).map(|(_, entry)| entry).collect()
    }
}

impl Place {
    fn add(&mut self, entry: AuditEntry) {
        let (first, counted) =
            self.counted.as_ref().map_or((minute(entry.at), 0), |(first, entry)| (*first, entry.count));
        self.counted = Some((first, AuditEntry { count: counted + entry.count, ..entry }));
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

    /// S16: a flood of requests without credentials becomes a few entries, and each request is counted.
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
        assert_eq!(flood.count, 1_000 - DENIED.each);
    }

    /// Mistakes use up nothing that a denial needs, and replace none that was counted.
    #[test]
    fn failures_hide_no_denial() {
        let throttle = Throttle::default();
        let of =
            |ms, outcome, action: &str| AuditEntry { outcome, action: action.to_owned(), ..entry(ms, "key_1", "s") };
        for n in 0..1_000 {
            throttle.admit(of(n, AuditOutcome::Failed, "run.start"));
            throttle.admit(of(n, AuditOutcome::Denied, "run.delete"));
        }
        assert!(throttle.admit(of(1_000, AuditOutcome::Denied, "key.create")).is_some(), "another action");
        throttle.admit(of(1_001, AuditOutcome::Failed, "run.delete"));
        let counted = throttle.drain(None);
        let count =
            |outcome| counted.iter().filter(|entry| entry.outcome == outcome).map(|entry| entry.count).sum::<u64>();
        assert_eq!(count(AuditOutcome::Denied), 1_000 - DENIED.each);
        assert_eq!(count(AuditOutcome::Failed), 1_001 - FAILED.each);
    }

    /// One caller has some entries for each of its actions, and not so many that it uses up what all have.
    #[test]
    fn a_caller_has_so_many_entries_for_all_its_actions() {
        let throttle = Throttle::default();
        let of = |actor: &str, action: u64| AuditEntry { action: action.to_string(), ..entry(0, actor, "s") };
        let written = |actor: &str| (0..1_000).filter(|n| throttle.admit(of(actor, n % 40)).is_some()).count() as u64;
        assert_eq!((written("key_1"), written("key_2")), (DENIED.caller, DENIED.caller));
        let counted: u64 = throttle.drain(None).iter().map(|entry| entry.count).sum();
        assert_eq!(counted, 2 * (1_000 - DENIED.caller), "the others are counted");
    }

    #[test]
    fn a_flood_that_goes_on_is_written_minute_by_minute() {
        let throttle = Throttle::default();
        for n in (0..100).chain(60_000..60_100) {
            throttle.admit(entry(n, "key_1", "s"));
        }
        let counted = throttle.drain(Some(Timestamp::from_millis(60_200)));
        assert_eq!(counted.len(), 1, "though its latest is of this minute");
    }
}
