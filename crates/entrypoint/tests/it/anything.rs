//! Definitions with anything at any place.

use proptest::prelude::*;
use serde_json::{Value, json};
use servo_entrypoint::ValidationError;
use servo_model::invocation::errors;

use crate::support::{World, function, with, workflow};

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z$.~#/]{0,12}".prop_map(Value::from),
        Just(json!("gts://gts.x.core.serverless.err.v1~")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name =
            prop_oneof!["[a-z_$]{1,8}", Just("$ref".to_owned()), Just("type".to_owned()), Just("allOf".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Every place of a definition.
const PLACES: [&str; 29] = [
    "/version",
    "/tenant_id",
    "/owner",
    "/owner/id",
    "/status",
    "/tags",
    "/title",
    "/description",
    "/schema",
    "/schema/params",
    "/schema/returns",
    "/schema/errors",
    "/traits",
    "/traits/invocation",
    "/traits/limits",
    "/traits/retry",
    "/traits/caching",
    "/traits/rate_limit",
    "/traits/workflow",
    "/traits/is_idempotent",
    "/implementation",
    "/implementation/adapter",
    "/implementation/code",
    "/x_other",
    "/traits/retry/backoff_multiplier",
    "/traits/retry/initial_delay_ms",
    "/traits/limits/timeout_seconds",
    "/traits/limits/cpu",
    "/traits/limits/max_concurrent",
];

proptest! {
    /// Whatever stands at whatever place: there is an answer, a valid one is normal, and normal is stable.
    #[test]
    fn any_document_has_an_answer(place in prop::sample::select(&PLACES[..]), value in anything(), durable in any::<bool>()) {
        let world = World::new();
        let document = with(if durable { workflow() } else { function() }, place, value);
        match world.check(&document) {
            Ok(valid) => {
                let normal = serde_json::to_value(&valid.entrypoint).unwrap();
                prop_assert_eq!(&world.normal(&normal), &normal);
            }
            Err(failure) => {
                prop_assert!([errors::VALIDATION, errors::FORBIDDEN].contains(&failure.error_type_id.as_str()));
                if let Some(error) = ValidationError::of(&failure) {
                    prop_assert!(!error.issues.is_empty());
                    prop_assert!(error.issues.iter().all(|issue| issue.location.path.starts_with('$')));
                }
            }
        }
    }
}
