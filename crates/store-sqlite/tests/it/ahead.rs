//! What was answered and is not in the database yet: reads see it, and after the process has died it is there.
//!
//! The same steps are made on a store and on the reference model, and every call that reads what they change must say
//! the same of both.

mod crash;
mod damage;
mod steps;

use servo_model::limits::Limits;
use servo_store::mem::MemStore;
use servo_store::testkit::clock::ManualClock;

use crate::support::{folder, open, wait};
use steps::{CALLS, STEPS, look, look_at};

fn reference() -> MemStore {
    MemStore::new(ManualClock::new().time_source(), Limits::default(), [0; 32])
}

#[test]
fn every_read_sees_what_was_answered_a_moment_ago() {
    for call in CALLS {
        let dir = folder();
        let (store, reference) = (open(dir.path()), reference());
        for (name, step) in STEPS {
            wait(step(&store));
            wait(step(&reference));
            // This call alone: any other would have waited for the database already.
            assert_eq!(wait(look(&store, call)), wait(look(&reference, call)), "{call} after {name}");
        }
    }
}

#[test]
fn every_step_is_seen_by_some_read() {
    let reference = reference();
    // Without the one that claims: it says something else each time.
    let calls = &CALLS[..CALLS.len() - 1];
    let mut before = wait(look_at(&reference, calls));
    for (name, step) in STEPS {
        wait(step(&reference));
        let after = wait(look_at(&reference, calls));
        assert_ne!(after, before, "{name}");
        before = after;
    }
}
