//! What several handlers need.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use servo_sdk::{
    Backoff, BatchResult, BoxError, DurableError, Jitter, RetryStrategy, SerDes, SerDesContext, SerDesError,
    StepConfig, ValueSerDes,
};

pub(crate) type Out = Result<Value, DurableError>;

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub(crate) fn boom<T>() -> Result<T, BoxError> {
    Err(DurableError::user("BoomError", "it was bound to fail").into())
}

/// So many attempts in all, a second apart.
pub(crate) fn attempts(max_attempts: u32) -> Option<Box<dyn RetryStrategy>> {
    let second = Duration::from_secs(1);
    let jitter = Jitter::None;
    Some(Box::new(Backoff { max_attempts, initial: second, max: second, factor: 1.0, jitter, ..Backoff::default() }))
}

pub(crate) fn no_retry() -> Option<StepConfig> {
    Some(StepConfig { retry_strategy: attempts(1), ..StepConfig::default() })
}

/// A serdes of two functions.
struct Custom {
    write: fn(&Value) -> String,
    read: fn(&str) -> Value,
}

impl SerDes<Value> for Custom {
    fn serialize(&self, value: &Value, _: &SerDesContext) -> Result<String, SerDesError> {
        Ok((self.write)(value))
    }

    fn deserialize(&self, data: &str, _: &SerDesContext) -> Result<Value, SerDesError> {
        Ok((self.read)(data))
    }
}

pub(crate) fn serdes(write: fn(&Value) -> String, read: fn(&str) -> Value) -> ValueSerDes {
    Arc::new(Custom { write, read })
}

/// Writes a text in capitals and without quotes.
pub(crate) fn uppercase() -> ValueSerDes {
    serdes(|value| text(value).to_uppercase(), |data| data.into())
}

pub(crate) fn results<T: Serialize>(batch: &BatchResult<T>) -> Value {
    batch.items.iter().filter_map(|item| item.result.as_ref()).map(|result| json!(result)).collect()
}

pub(crate) fn projection<T>(batch: &BatchResult<T>) -> Value {
    json!({
        "completionReason": batch.completion_reason,
        "status": batch.status(),
        "successCount": batch.success_count(),
        "failureCount": batch.failure_count(),
        "totalCount": batch.total_count(),
    })
}
