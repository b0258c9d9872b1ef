//! Properties of the fold, on arbitrary logs and on plausible ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use servo_model::event::EventBody;
use servo_model::projection::project_run;
use servo_model::run::RunChange;
use servo_model::state::Applied;
use servo_model::{Event, RunSnapshot, RunState, RunStatus, StepStatus};

use crate::arb::{any_log, other_body, plausible_log};
use crate::support::{event, fold, run_id};

/// Arbitrary or plausible: what holds for all logs is checked on both.
fn either_log() -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![any_log(), plausible_log()]
}

fn without_watermark(state: &RunState) -> RunState {
    let mut state = state.clone();
    state.last_event_seq = 0;
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// ES-042: all at once equals any split into parts.
    #[test]
    fn folding_all_equals_folding_any_split(
        events in either_log(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(events.len() + 1)).collect();
        cuts.extend([0, events.len()]);
        cuts.sort_unstable();
        let mut state = RunState::new(run_id());
        for pair in cuts.windows(2) {
            state = state.fold(&events[pair[0]..pair[1]]);
        }
        prop_assert_eq!(&state, &fold(&events));
        prop_assert_eq!(RunSnapshot::from(&state), project_run(&run_id(), &events));
    }

    /// ES-041: the same input gives the same output, and states that were handed out before stay as they were.
    #[test]
    fn folding_is_pure(events in either_log()) {
        let mut states = vec![RunState::new(run_id())];
        // As each was when it was handed out, before anything was folded onto a copy of it.
        let mut texts = vec![format!("{:?}", states[0])];
        for event in &events {
            let next = states.last().unwrap().clone().apply(event).0;
            texts.push(format!("{next:?}"));
            states.push(next);
        }
        for (number, state) in states.iter().enumerate() {
            prop_assert_eq!(state, &fold(&events[..number]));
            prop_assert_eq!(&format!("{state:?}"), &texts[number]);
        }
    }

    /// ES-043: the watermark is the highest sequence, whatever the events were.
    #[test]
    fn the_watermark_is_the_highest_sequence(events in either_log()) {
        let mut state = RunState::new(run_id());
        let mut highest = 0;
        for event in &events {
            highest = highest.max(event.run_seq);
            state = state.apply(event).0;
            prop_assert_eq!(state.last_event_seq, highest);
            prop_assert_eq!(RunSnapshot::from(&state).last_event_seq, highest);
        }
    }

    /// ES-044: an event that is recorded a second time, at a later sequence, changes nothing but the watermark.
    #[test]
    fn a_repeated_event_has_no_effect(events in plausible_log(), which in any::<prop::sample::Index>(), gap in 1_u64..3) {
        let state = fold(&events);
        let mut again = which.get(&events).clone();
        again.run_seq = state.last_event_seq + gap;
        let (after, applied) = state.clone().apply(&again);
        prop_assert_eq!(after.last_event_seq, again.run_seq);
        prop_assert_eq!(without_watermark(&after), without_watermark(&state));
        // After a failure or cancellation it is not known any more how far the run had come.
        if !matches!(state.status, RunStatus::Failed | RunStatus::Cancelled) {
            prop_assert_eq!(applied, Applied::Duplicate);
        }
        // And one that is delivered again under its own sequence does not even move the watermark.
        prop_assert_eq!(state.clone().apply(which.get(&events)), (state, Applied::Duplicate));
    }

    /// ES-045: an unknown type anywhere in the log changes nothing but the watermark.
    #[test]
    fn uninterned_types_have_no_effect(
        events in either_log(),
        strange in prop::collection::vec((any::<prop::sample::Index>(), other_body()), 1..4),
    ) {
        let mut bodies: Vec<EventBody> = Vec::new();
        let mut last = 0;
        for event in events.iter().filter(|event| {
            let is_new = event.run_seq > last;
            last = last.max(event.run_seq);
            is_new
        }) {
            bodies.push(event.body.clone());
        }
        let renumber = |bodies: Vec<EventBody>| crate::support::log(bodies);
        let plain = fold(&renumber(bodies.clone()));
        // Signals remember the sequence that they were recorded under, which the insertions move.
        let comparable = |state: &RunState| {
            let mut snapshot = RunSnapshot::from(state);
            snapshot.last_event_seq = 0;
            let times: Vec<_> = snapshot.steps.iter().map(|step| (step.status, step.logical_attempt_id)).collect();
            (snapshot.status, times, state.round, state.pauses, state.resumes, state.signals_accepted, state.in_flight)
        };
        for (place, body) in strange {
            let place = place.index(bodies.len() + 1);
            bodies.insert(place, body);
        }
        let count = bodies.len() as u64;
        let mixed = fold(&renumber(bodies));
        prop_assert_eq!(comparable(&mixed), comparable(&plain));
        prop_assert_eq!(mixed.last_event_seq, count);
    }

    /// ES-003: gaps mean nothing. The same events with other sequences give the same run.
    #[test]
    fn gaps_mean_nothing(events in plausible_log(), gaps in prop::collection::vec(1_u64..1_000, 60)) {
        let mut sparse = events.clone();
        let mut run_seq = 0;
        for (event, gap) in sparse.iter_mut().zip(gaps.iter().cycle()) {
            run_seq += gap;
            event.run_seq = run_seq;
        }
        let (mut dense, mut with_gaps) = (project_run(&run_id(), &events), project_run(&run_id(), &sparse));
        prop_assert_eq!(with_gaps.last_event_seq, run_seq);
        dense.last_event_seq = 0;
        with_gaps.last_event_seq = 0;
        prop_assert_eq!(with_gaps, dense);
    }

    /// ES-021: a finished run stays as it ended; only a failed one is opened again, by `RunQueued` of the next round.
    /// ES-020: and the fold knows no other way from status to status than the transition function.
    #[test]
    fn no_status_changes_but_by_the_table(events in either_log()) {
        let mut state = RunState::new(run_id());
        for event in &events {
            let before = state.clone();
            state = state.apply(event).0;
            if state.status == before.status {
                continue;
            }
            if before.status.is_terminal() {
                let EventBody::RunQueued(body) = &event.body else { panic!("{event:?} changed {before:?}") };
                prop_assert!(before.status == RunStatus::Failed && state.status == RunStatus::Pending);
                prop_assert!(body.logical_attempt_id > before.round);
            }
            let by_table = RunChange::ALL.iter().any(|change| before.status.next(*change) == Ok(state.status));
            // A log from elsewhere may begin with its start.
            let begins = before.round == 0 && matches!(event.body, EventBody::RunStarted(_));
            prop_assert!(by_table || begins, "{:?} -> {:?} by {event:?}", before.status, state.status);
        }
    }

    /// ES-035: an attempt that has ended never changes, and a new one comes behind it.
    #[test]
    fn ended_attempts_never_change(events in either_log()) {
        let mut state = RunState::new(run_id());
        for event in &events {
            let before = state.clone();
            state = state.apply(event).0;
            for step in &before.steps {
                let after = state.step(state.step_number(&step.step_id).expect("steps are never lost"));
                prop_assert!(after.past.starts_with(&step.past), "{event:?}");
                prop_assert!(after.attempt.logical_attempt_id >= step.attempt.logical_attempt_id);
                if step.attempt.status.is_terminal() && after.attempt != step.attempt {
                    prop_assert_eq!(after.past.get(step.past.len()), Some(&step.attempt), "{:?}", event);
                }
            }
        }
    }

    /// Counters and indexes are what a recount gives, after every event of any log.
    #[test]
    fn counters_are_right(events in either_log()) {
        let mut state = RunState::new(run_id());
        for event in &events {
            state = state.apply(event).0;
            let count = |status: StepStatus| state.steps.iter().filter(|step| step.attempt.status == status).count();
            prop_assert_eq!(state.in_flight as usize, count(StepStatus::Running));
            prop_assert_eq!(state.open_steps as usize, count(StepStatus::Running) + count(StepStatus::Pending));
            prop_assert_eq!(state.failed_steps as usize, count(StepStatus::Failed));
            let ids: BTreeSet<_> = state.steps.iter().map(|step| &step.step_id).collect();
            prop_assert_eq!(ids.len(), state.steps.len(), "a step appears twice after {:?}", event);
            for (number, step) in (0_u32..).zip(&state.steps) {
                prop_assert_eq!(state.step_number(&step.step_id), Some(number));
            }
            if let Some(plan) = &state.plan {
                let planned: Vec<_> = plan.steps.iter().map(|step| &step.step_id).collect();
                let first: Vec<_> = state.steps.iter().map(|step| &step.step_id).take(planned.len()).collect();
                prop_assert_eq!(first, planned);
            }
            let waiting = state.steps.iter().filter(|step| {
                step.attempt.status == StepStatus::Pending && step.attempt.not_before.is_some()
            });
            prop_assert_eq!(state.due_steps(servo_model::Timestamp::MAX).count(), waiting.count());
        }
    }

    /// What a correct writer records folds without a finding.
    #[test]
    fn plausible_logs_have_no_findings(events in plausible_log()) {
        let mut state = RunState::new(run_id());
        for event in &events {
            let (next, applied) = state.apply(event);
            prop_assert_eq!(applied, Applied::Changed, "{:?}", event);
            state = next;
        }
    }

    /// ES-015: times order nothing. With any times at all, statuses come out the same.
    #[test]
    fn times_order_nothing(events in either_log(), times in prop::collection::vec(0_i64..10_000, 64)) {
        let mut other = events.clone();
        for (event, time) in other.iter_mut().zip(times.iter().cycle()) {
            event.emitted_at = crate::support::at(*time);
            event.occurred_at = Some(crate::support::at(10_000 - *time));
        }
        let statuses = |events: &[Event]| {
            let snapshot = project_run(&run_id(), events);
            let steps: Vec<_> = snapshot.steps.iter().map(|s| (s.step_id.clone(), s.status, s.logical_attempt_id)).collect();
            (snapshot.status, snapshot.last_event_seq, steps)
        };
        prop_assert_eq!(statuses(&events), statuses(&other));
    }

    /// ES-016: signals are remembered and change neither status nor steps.
    #[test]
    fn signals_change_no_status(events in either_log()) {
        let mut state = RunState::new(run_id());
        for event in &events {
            let before = state.clone();
            state = state.apply(event).0;
            let (id, rejected) = match &event.body {
                EventBody::SignalAccepted(body) => (&body.signal_id, false),
                EventBody::SignalRejected(body) => (&body.signal_id, true),
                _ => continue,
            };
            prop_assert_eq!((state.status, &state.steps), (before.status, &before.steps));
            if (before.signals_accepted, before.signals_rejected) != (state.signals_accepted, state.signals_rejected) {
                prop_assert_eq!(state.signals[id].rejection.is_some(), rejected);
                prop_assert_eq!(state.signals[id].run_seq, event.run_seq);
            }
        }
    }
}

/// The strategies reach what they are meant to reach; otherwise the properties above would hold for nothing.
#[test]
fn the_strategies_reach_every_status() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut runs, mut steps, mut findings) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for _ in 0..400 {
        let plausible = plausible_log().new_tree(&mut runner).unwrap().current();
        let state = fold(&plausible);
        runs.insert((state.status, state.round.min(2)));
        steps.extend(state.steps.iter().map(|step| (step.attempt.status, step.past.len().min(1))));
        let mut state = RunState::new(run_id());
        for event in any_log().new_tree(&mut runner).unwrap().current() {
            let (next, applied) = state.apply(&event);
            findings.insert(match applied {
                Applied::Changed => "changed",
                Applied::Duplicate => "duplicate",
                Applied::NoEffect => "no effect",
                Applied::Illegal(_) => "illegal",
                Applied::Inverted { .. } => "inverted",
            });
            state = next;
        }
    }
    assert_eq!(runs.iter().map(|(status, _)| status).collect::<BTreeSet<_>>().len(), 7, "{runs:?}");
    assert!(runs.iter().filter(|(_, round)| *round == 2).count() >= 5, "{runs:?}");
    assert_eq!(steps.len(), 10, "{steps:?}");
    assert_eq!(findings.len(), 5, "{findings:?}");
}

/// The last sequence there is does not overflow anything.
#[test]
fn the_last_sequence_is_a_sequence() {
    let mut last = event(1, crate::support::beginning(1).remove(0));
    last.run_seq = u64::MAX;
    let state = RunState::new(run_id()).apply(&last).0;
    assert_eq!(state.last_event_seq, u64::MAX);
    assert!(!servo_model::projection::detect_non_contiguous(u64::MAX, u64::MAX));
    assert!(servo_model::projection::detect_non_contiguous(0, u64::MAX));
}
