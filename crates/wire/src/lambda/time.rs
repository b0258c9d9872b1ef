//! Two spellings of one moment: REST bodies count seconds, the invocation envelope counts milliseconds.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use servo_model::Timestamp;

/// Epoch seconds with a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub Timestamp);

/// Epoch milliseconds, whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub Timestamp);

impl From<Timestamp> for Seconds {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl From<Timestamp> for Millis {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl From<Seconds> for Timestamp {
    fn from(at: Seconds) -> Self {
        at.0
    }
}

impl From<Millis> for Timestamp {
    fn from(at: Millis) -> Self {
        at.0
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this era are far below 2^53")]
        serializer.serialize_f64(self.0.as_millis() as f64 / 1_000.0)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.as_millis())
    }
}

/// Clients read either spelling in either place: a number this large cannot be seconds (it would be the year 5138).
const MILLIS_FROM: f64 = 1e11;

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let millis = if number.abs() >= MILLIS_FROM { number } else { number * 1_000.0 };
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates, and so large a time is wrong anyway")]
    Ok(Timestamp::from_millis(millis.round() as i64))
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}
