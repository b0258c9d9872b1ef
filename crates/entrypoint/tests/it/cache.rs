//! Idempotency keys: whose they are, and what a repeated one gets.

use std::time::Duration;

use servo_entrypoint::cache::{Earlier, Key, Lookup, Policy, is_active, lookup};
use servo_entrypoint::{InvocationStatus, OwnerType};
use servo_model::{Role, Timestamp};

use crate::support::{World, context, minimal};

const WINDOW: u64 = 86_400;

fn key(tenant: &str, subject: &str, owner: OwnerType, version: &str, key: &str) -> Key {
    let mut ctx = context(tenant, Role::Operator);
    ctx.subject = subject.to_owned();
    Key::new(&ctx, owner, "gts.a.b.c.v1~", version, key)
}

/// SR-383, SR-428, SR-429, SR-430, SR-431, SR-432, SR-433, SR-451: a key belongs to tenant, entrypoint and version, and
/// to the user where the user owns.
#[test]
fn keys_belong_to_somebody() {
    let same = |left: &Key, right: &Key| {
        assert_eq!(left == right, left.digest() == right.digest());
        left == right
    };
    for owner in OwnerType::ALL {
        let one = key("t1", "u1", owner, "1.0.0", "k");
        assert!(same(&one, &key("t1", "u1", owner, "1.0.0", "k")));
        assert_eq!(same(&one, &key("t1", "u2", owner, "1.0.0", "k")), owner != OwnerType::User, "{owner:?}");
        assert!(!same(&one, &key("t2", "u1", owner, "1.0.0", "k")));
        assert!(!same(&one, &key("t1", "u1", owner, "1.0.1", "k")));
        assert!(!same(&one, &key("t1", "u1", owner, "1.0.0", "k2")));
    }
    assert!(!same(&key("t1", "u1", OwnerType::User, "1.0.0", "k"), &key("t1", "u1", OwnerType::Tenant, "1.0.0", "k")));
    // Parts cannot run into each other.
    assert!(!same(&key("t1", "u|1:k", OwnerType::User, "1", "k"), &key("t1", "u", OwnerType::User, "1", "1:k|k")));
}

/// SR-426, SR-427, SR-449: all three conditions, or no cache.
#[test]
fn caching_needs_all_three() {
    let mut traits = World::new().check(&minimal()).unwrap().entrypoint.definition.traits;
    for (has_key, idempotent, age) in (0..8).map(|n| (n & 1 > 0, n & 2 > 0, u64::from(n & 4 > 0) * 60)) {
        traits.is_idempotent = idempotent;
        traits.caching.max_age_seconds = age;
        assert_eq!(is_active(&traits, has_key), has_key && idempotent && age > 0);
        let active = (idempotent && age > 0).then(|| Duration::from_secs(60));
        assert_eq!(Policy::of(&traits, WINDOW).max_age, active);
    }
}

fn ask(status: InvocationStatus, max_age: Option<u64>, age: u64, same_params: bool) -> Lookup {
    let at = |seconds: u64| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
    // Created at 0, ended at 10.
    let ended = !matches!(status, InvocationStatus::Queued | InvocationStatus::Running | InvocationStatus::Suspended);
    let earlier = Earlier { status, created_at: at(0), finished_at: ended.then(|| at(10)), same_params };
    let policy = Policy { window: Duration::from_secs(WINDOW), max_age: max_age.map(Duration::from_secs) };
    lookup(Some(&earlier), at(age), policy)
}

/// SR-376, SR-377, SR-383: without caching a key counts for the window.
#[test]
fn repeats_within_the_window_start_nothing() {
    use InvocationStatus as S;
    for status in S::ALL {
        let going = matches!(status, S::Queued | S::Running | S::Suspended | S::Compensating);
        let expected = if going { Lookup::InFlight } else { Lookup::Repeat };
        assert_eq!(ask(status, None, 20, true), expected, "{status:?}");
        assert_eq!(ask(status, None, WINDOW - 1, true), expected);
        assert_eq!(ask(status, None, WINDOW, true), Lookup::Fresh);
        assert_eq!(ask(status, None, 20, false), Lookup::Mismatch);
        assert_eq!(ask(status, None, WINDOW, false), Lookup::Fresh);
    }
    let policy = Policy { window: Duration::from_secs(WINDOW), max_age: None };
    assert_eq!(lookup(None, Timestamp::EPOCH, policy), Lookup::Fresh);
}

/// SR-434, SR-435, SR-437, SR-438, SR-448, SR-450: a success is served for its age, nothing else is.
#[test]
fn successes_are_served_for_their_age() {
    use InvocationStatus as S;
    assert_eq!(ask(S::Succeeded, Some(60), 10, true), Lookup::Hit);
    assert_eq!(ask(S::Succeeded, Some(60), 69, true), Lookup::Hit);
    assert_eq!(ask(S::Succeeded, Some(60), 70, true), Lookup::Fresh);
    assert_eq!(ask(S::Succeeded, Some(60), 69, false), Lookup::Mismatch);
    assert_eq!(ask(S::Succeeded, Some(10 * WINDOW), 2 * WINDOW, true), Lookup::Hit);
    for status in S::ALL.into_iter().filter(|status| *status != S::Succeeded) {
        for age in [20, 70, WINDOW - 1] {
            assert!(matches!(ask(status, Some(60), age, true), Lookup::InFlight | Lookup::Repeat), "{status:?}");
        }
        assert_eq!(ask(status, Some(60), WINDOW, true), Lookup::Fresh);
    }
}
