//! Values that look random or current and are the same on every replay.

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};
use uuid::Uuid;

use crate::ExecutionState;

#[derive(Debug, Clone, Copy)]
pub struct ReplaySafeHelpers;

impl ReplaySafeHelpers {
    /// The same id for the same operation and seed: BLAKE2b of both, marked as a version 8 UUID.
    pub fn uuid_from_operation(operation_id: &str, seed: u64) -> Uuid {
        let mut hasher = Blake2b::<U16>::new();
        hasher.update(operation_id.as_bytes());
        hasher.update(seed.to_be_bytes());
        let bytes: [u8; 16] = hasher.finalize().into();
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// When the execution began, in milliseconds since 1970.
    pub fn timestamp_from_execution(state: &ExecutionState) -> u64 {
        u64::try_from(state.started_at().as_millis()).unwrap_or(0)
    }
}
