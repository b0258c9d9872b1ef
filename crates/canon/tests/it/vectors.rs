//! The vectors that every language runs. They are data: a failure here means that the code is wrong.

use serde::Deserialize;
use serde_json::value::RawValue;
use servo_canon::{Digest, canonicalize, to_canonical};

const CANONICAL: &str = include_str!("../../../../spec/vectors/canonical_json_vectors.json");
const IDEMPOTENCY_KEYS: &str = include_str!("../../../../spec/vectors/idempotency_keys.json");

#[derive(Deserialize)]
struct CanonicalVectors {
    vectors: Vec<CanonicalVector>,
}

#[derive(Deserialize)]
struct CanonicalVector {
    name: String,
    input: Box<RawValue>,
    expected_canonical: String,
}

#[test]
fn canonical_json_vectors_match_by_text_by_value_and_by_raw_value() {
    let CanonicalVectors { vectors } = serde_json::from_str(CANONICAL).unwrap();
    assert_eq!(vectors.len(), 12, "a vector was lost");
    for vector in vectors {
        let value: serde_json::Value = serde_json::from_str(vector.input.get()).unwrap();
        let expected = Ok(vector.expected_canonical);
        assert_eq!(canonicalize(vector.input.get()), expected, "{} as text", vector.name);
        assert_eq!(to_canonical(&vector.input), expected, "{} as raw value", vector.name);
        assert_eq!(to_canonical(&value), expected, "{} as value", vector.name);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyVector {
    run_id: String,
    step_id: String,
    logical_attempt_id: u32,
    event_type: String,
    plan_version: String,
    idempotency_key: Digest,
}

#[test]
fn idempotency_key_vectors_match() {
    let vectors: Vec<KeyVector> = serde_json::from_str(IDEMPOTENCY_KEYS).unwrap();
    assert_eq!(vectors.len(), 7, "a vector was lost");
    for vector in vectors {
        let attempt = vector.logical_attempt_id.to_string();
        let parts = [&*vector.run_id, &vector.step_id, &attempt, &vector.event_type, &vector.plan_version];
        assert_eq!(Digest::of_parts(&parts, '|'), vector.idempotency_key, "{parts:?}");
    }
}
