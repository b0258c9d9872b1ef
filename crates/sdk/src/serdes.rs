//! How values become the texts that are recorded, and back. JSON unless an operation is told otherwise.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::DurableError;

/// Writes and reads recorded values. The same one must be given on every replay.
pub trait SerDes<T>: Send + Sync {
    fn serialize(&self, value: &T, context: &SerDesContext) -> Result<String, SerDesError>;
    fn deserialize(&self, data: &str, context: &SerDesContext) -> Result<T, SerDesError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerDesContext {
    pub operation_id: String,
    pub durable_execution_arn: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SerDesError {
    #[error("{0}")]
    Serialization(String),
    #[error("{0}")]
    Deserialization(String),
}

impl From<SerDesError> for DurableError {
    fn from(error: SerDesError) -> Self {
        let (what, reason) = match error {
            SerDesError::Serialization(reason) => ("written", reason),
            SerDesError::Deserialization(reason) => ("read back", reason),
        };
        Self::SerDes { message: format!("the value could not be {what}: {reason}") }
    }
}

pub struct JsonSerDes<T>(PhantomData<fn() -> T>);

impl<T> JsonSerDes<T> {
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for JsonSerDes<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JsonSerDes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonSerDes")
    }
}

impl<T: Serialize + DeserializeOwned> SerDes<T> for JsonSerDes<T> {
    fn serialize(&self, value: &T, _context: &SerDesContext) -> Result<String, SerDesError> {
        serde_json::to_string(value).map_err(|error| SerDesError::Serialization(error.to_string()))
    }

    fn deserialize(&self, data: &str, _context: &SerDesContext) -> Result<T, SerDesError> {
        read(data)
    }
}

/// What operations with a result of any type are configured with.
pub type ValueSerDes = Arc<dyn SerDes<Value>>;

pub(crate) fn write<T: Serialize>(
    value: &T,
    serdes: Option<&ValueSerDes>,
    context: &SerDesContext,
) -> Result<String, DurableError> {
    let unwritable = |error: serde_json::Error| SerDesError::Serialization(error.to_string());
    match serdes {
        None => Ok(serde_json::to_string(value).map_err(unwritable)?),
        Some(serdes) => Ok(serdes.serialize(&serde_json::to_value(value).map_err(unwritable)?, context)?),
    }
}

pub(crate) fn read_with<T: DeserializeOwned>(
    data: Option<&str>,
    serdes: Option<&ValueSerDes>,
    context: &SerDesContext,
) -> Result<T, DurableError> {
    let data = data.unwrap_or_default();
    match serdes {
        None => Ok(read(data)?),
        Some(serdes) => {
            let value = serdes.deserialize(data, context)?;
            Ok(serde_json::from_value(value).map_err(|error| SerDesError::Deserialization(error.to_string()))?)
        }
    }
}

/// Nothing at all reads as null: the service does not keep empty payloads apart from absent ones.
fn read<T: DeserializeOwned>(data: &str) -> Result<T, SerDesError> {
    let data = if data.is_empty() { "null" } else { data };
    serde_json::from_str(data).map_err(|error| SerDesError::Deserialization(error.to_string()))
}
