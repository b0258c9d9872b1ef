//! Numbers that Rust keeps in 32 bits and JSON writes in decimal: 0.2 stays 0.2.

use serde::{Deserialize, Deserializer, Serializer};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn serialize<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    // The shortest text of the small number, read as the large one.
    serializer.serialize_f64(value.to_string().parse().unwrap_or_else(|_| f64::from(*value)))
}

#[expect(clippy::cast_possible_truncation, reason = "the type has 32 bits")]
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    f64::deserialize(deserializer).map(|value| value as f32)
}
