//! A state is stored as JSON and folded on later, perhaps by another process. Nothing may get lost on the way.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::json;
use servo_model::contract::EVENTS;
use servo_model::event::EventBody;
use servo_model::{Event, RunState};

use crate::arb::{any_log, plausible_log};
use crate::samples::smallest;
use crate::support::{event, fold, queued, run_id};

fn stored(state: &RunState) -> RunState {
    let text = serde_json::to_string(state).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// ES-048: at every cut, the state comes back as it was, and folding on from it gives what folding from scratch gives.
    #[test]
    fn a_stored_state_folds_on(events in prop_oneof![any_log(), plausible_log()]) {
        let whole = fold(&events);
        let mut state = RunState::new(run_id());
        for cut in 0..=events.len() {
            let back = stored(&state);
            prop_assert_eq!(&back, &state);
            prop_assert_eq!(&back.fold(&events[cut..]), &whole);
            if let Some(event) = events.get(cut) {
                state = state.apply(event).0;
            }
        }
    }

    /// What an adapter gets is in the plan, and any JSON at all.
    #[test]
    fn any_plan_survives(number in any::<f64>().prop_filter("is JSON", |n| n.is_finite()), text in any::<String>(), big in any::<u64>()) {
        let with = json!({"number": number, "text": text, "big": big, "list": [null, {"": []}]});
        let plan = json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "steps": [{"stepId": "a", "with": with}]});
        let body = EventBody::RunQueued(Box::new(queued(Some(&plan.to_string()))));
        let first = event(1, body);
        let state = fold(std::slice::from_ref(&first));
        prop_assert_eq!(&stored(&state), &state);
        prop_assert_eq!(&state.plan.as_ref().unwrap().step(0).with, &with);
        // And the event itself, as the public document and as the stored body.
        prop_assert_eq!(&Event::from_json(&first.to_json()).unwrap(), &first);
        prop_assert_eq!(&EventBody::decode(first.body.event_type(), &first.body.encode()).unwrap(), &first.body);
    }

    /// Stored bodies come back as they were.
    #[test]
    fn bodies_survive(events in any_log()) {
        for event in &events {
            let back = EventBody::decode(event.body.event_type(), &event.body.encode()).unwrap();
            prop_assert_eq!(&back, &event.body);
        }
    }
}

/// The types that are known here are kept without a copy, others as they came.
#[test]
fn a_known_type_is_kept_without_a_copy() {
    for event in smallest() {
        assert_eq!(event.body.stored_type(), event.body.event_type());
        assert!(matches!(event.body.stored_type(), Cow::Borrowed(_)), "{:?}", event.body);
    }
    let names =
        EVENTS.iter().map(|(name, _)| *name).chain(["RunQueued", "ExecutionStarted", "RunDeadLettered", "RunImported"]);
    for name in names {
        assert!(matches!(EventBody::interned_type(name), Cow::Borrowed(kept) if kept == name), "{name}");
    }
    assert_eq!(EventBody::interned_type("test.noted"), Cow::<str>::Owned("test.noted".to_owned()));
    let other = EventBody::decode("test.noted", "{}").unwrap();
    assert_eq!((other.stored_type(), other.event_type()), (Cow::Borrowed("test.noted"), "test.noted"));
}
