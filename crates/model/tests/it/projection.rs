//! The projector's pure part: gaps, resync, stalls.

use proptest::prelude::*;
use serde_json::json;
use servo_model::projection::{Offered, Projection, Resynced, detect_non_contiguous, project_run};
use servo_model::state::Applied;
use servo_model::{Event, RunState};

use crate::arb::plausible_log;
use crate::support::{beginning, body, completed, fold, log, run_id, started, step};

fn empty() -> RunState {
    RunState::new(run_id())
}

fn start() -> Vec<Event> {
    log(beginning(1).into_iter().chain([started("a", 1), completed("a", 1, Vec::new())]))
}

fn offered(projection: Projection, events: &[Event]) -> Projection {
    events.iter().fold(projection, |projection, event| projection.offer(event).0)
}

/// ES-046
#[test]
fn gaps_are_what_does_not_follow_directly() {
    for (last, next, gap) in
        [(0, 1, false), (0, 2, true), (10, 11, false), (10, 12, true), (10, 10, false), (10, 3, false)]
    {
        assert_eq!(detect_non_contiguous(last, next), gap, "{last} {next}");
    }
}

/// ES-046: a gap makes the projection stale, and nothing is applied until a resync has advanced the watermark.
/// ES-003: after which the gap is as good as any other place in the log.
#[test]
fn a_gap_is_bridged_by_a_resync() {
    let events: Vec<Event> = start().into_iter().filter(|event| event.run_seq != 4).collect();
    let projection = offered(Projection::new(empty()), &events[..3]);
    assert!(!projection.is_stale());
    let (projection, outcome) = projection.offer(&events[3]);
    assert_eq!(outcome, Offered::Gap { watermark: 3, next_seq: 5 });
    assert!(projection.is_stale());
    assert_eq!(projection.state(), &fold(&events[..3]), "nothing was applied");
    // Stale means stale: what would follow directly waits as well.
    let late = &start()[3];
    let (projection, outcome) = projection.offer(late);
    assert_eq!(outcome, Offered::Gap { watermark: 3, next_seq: 4 });
    let (projection, outcome) = projection.resync(empty(), &events);
    assert_eq!(outcome, Resynced::Advanced { from: 3, to: 5, findings: Vec::new() });
    assert!(!projection.is_stale());
    assert_eq!(projection.state(), &fold(&events));
    let next = log([body("RunCompleted", json!({"status": "COMPLETED"}))]).remove(0);
    let (_, outcome) = projection.offer(&Event { run_seq: 6, ..next });
    assert!(matches!(outcome, Offered::Applied(Applied::Changed)));
}

/// ES-046: a resync that brings nothing new is reported as a stall and ends nothing.
#[test]
fn a_resync_without_advance_is_a_stall() {
    let events = start();
    let projection = offered(Projection::new(empty()), &events[..3]);
    let (projection, _) = projection.offer(&events[4]);
    for (base, delta) in [
        (empty(), &events[..3]),
        (empty(), &events[..2]),
        (empty(), &events[..0]),
        (fold(&events[..3]), &events[..0]),
        (fold(&events[..2]), &events[2..3]),
    ] {
        let (projection, outcome) = projection.clone().resync(base, delta);
        assert_eq!(outcome, Resynced::Stalled { watermark: 3 });
        assert!(projection.is_stale());
        assert_eq!(projection.state(), &fold(&events[..3]), "a stall takes nothing away");
        assert!(matches!(projection.offer(&events[3]).1, Offered::Gap { .. }));
    }
}

/// ES-046: from a stored snapshot and the events after it, the same state comes out as from the beginning.
#[test]
fn both_ways_of_reading_again_agree() {
    let events = start();
    let stale = offered(Projection::new(empty()), &events[..1]).offer(&events[3]).0;
    for cut in 0..=events.len() {
        let (projection, outcome) = stale.clone().resync(fold(&events[..cut]), &events[cut..]);
        assert_eq!(outcome, Resynced::Advanced { from: 1, to: 5, findings: Vec::new() });
        assert_eq!(projection.state(), &fold(&events));
    }
}

/// ES-044: events that were applied before are no gap and change nothing.
#[test]
fn old_events_are_duplicates() {
    let events = start();
    let projection = offered(Projection::new(empty()), &events);
    for event in &events {
        let (after, outcome) = projection.clone().offer(event);
        assert_eq!(outcome, Offered::Applied(Applied::Duplicate));
        assert_eq!(after.state(), projection.state());
    }
}

/// ES-009: an inversion does not stop the projection; a resync reports it once, for what is new.
#[test]
fn inversions_are_findings() {
    let events = log(beginning(1).into_iter().chain([started("d", 1), started("a", 1)]));
    let inverted = Applied::Inverted { step: step("d"), dependency: step("b") };
    let projection = offered(Projection::new(empty()), &events[..3]);
    let (after, outcome) = projection.clone().offer(&events[3]);
    assert_eq!(outcome, Offered::Applied(inverted.clone()));
    assert!(!after.is_stale());
    let (stale, _) = projection.offer(&events[4]);
    let (_, outcome) = stale.resync(empty(), &events);
    assert_eq!(outcome, Resynced::Advanced { from: 3, to: 5, findings: vec![inverted] });
    let (stale, _) = after.offer(&Event { run_seq: 9, ..events[4].clone() });
    let (_, outcome) = stale.resync(empty(), &events);
    assert_eq!(outcome, Resynced::Advanced { from: 4, to: 5, findings: Vec::new() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// ES-046, ES-048: a projector that misses deliveries, sees some twice and reads again on gaps, from the beginning or
    /// from a stored snapshot, ends with what the log says.
    #[test]
    fn a_projector_always_catches_up(
        events in plausible_log(),
        gaps in prop::collection::vec(1_u64..3, 61),
        fates in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 61),
    ) {
        let mut events = events;
        let mut run_seq = 0;
        for (event, gap) in events.iter_mut().zip(&gaps) {
            run_seq += gap;
            event.run_seq = run_seq;
        }
        let mut projection = Projection::new(empty());
        let last = events.len() - 1;
        for (number, (fate, place)) in fates.iter().enumerate().take(events.len()) {
            // Missed, delivered late, or delivered; the last one always is.
            let event = match fate {
                0 if number < last => continue,
                1 if number < last => place.get(&events[..=number]),
                _ => &events[number],
            };
            let before = projection.state().last_event_seq;
            let (next, outcome) = projection.offer(event);
            projection = next;
            if let Offered::Gap { .. } = outcome {
                prop_assert!(projection.is_stale());
                prop_assert_eq!(projection.state().last_event_seq, before);
                let cut = if *fate == 2 { 0 } else { place.index(number + 1) };
                let (next, outcome) = projection.resync(fold(&events[..cut]), &events[cut..=number]);
                let head = events[number].run_seq;
                prop_assert_eq!(next.is_stale(), head <= before);
                prop_assert_eq!(matches!(outcome, Resynced::Stalled { .. }), head <= before);
                projection = next;
            }
        }
        prop_assert_eq!(projection.state(), &fold(&events));
        prop_assert_eq!(servo_model::RunSnapshot::from(projection.state()), project_run(&run_id(), &events));
    }
}
