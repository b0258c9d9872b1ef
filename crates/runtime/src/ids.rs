//! Ids and randomness, injected: seeded in tests and the simulator, from the operating system in production.

use std::sync::Mutex;

use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use servo_model::{EventId, KeyId, RunId, Timestamp, TraceContext};

#[derive(Debug)]
pub struct Ids(Mutex<StdRng>);

impl Ids {
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// A UUID of version 7: time first, so that ids made together are stored together.
    pub fn event_id(&self, now: Timestamp) -> EventId {
        let mut bytes = [0u8; 16];
        self.with(|rng| rng.fill_bytes(&mut bytes[6..]));
        bytes[..6].copy_from_slice(&now.as_millis().to_be_bytes()[2..]);
        bytes[6] = (bytes[6] & 0x0f) | 0x70;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        EventId::from_bytes(bytes)
    }

    /// For what is sealed: never the same twice.
    pub fn nonce(&self) -> [u8; 12] {
        let mut bytes = [0u8; 12];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes
    }

    /// A span of its own in an existing trace.
    pub fn span(&self) -> u64 {
        let mut bytes = [0u8; 8];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        u64::from_le_bytes(bytes)
    }

    /// A new trace, as W3C writes it.
    pub fn traceparent(&self) -> String {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        self.with(|rng| {
            rng.fill_bytes(&mut trace);
            rng.fill_bytes(&mut span);
        });
        TraceContext::new(u128::from_be_bytes(trace), u64::from_be_bytes(span), true).traceparent()
    }

    /// For secrets: the generator is one that cannot be guessed, seeded by the operating system in production.
    pub fn secret<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0u8; N];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes
    }

    pub fn key_id(&self, now: Timestamp) -> KeyId {
        let mut random = [0u8; 10];
        self.with(|rng| rng.fill_bytes(&mut random));
        KeyId::new(now, random)
    }

    pub fn run_id(&self, now: Timestamp) -> RunId {
        let mut random = [0u8; 10];
        self.with(|rng| rng.fill_bytes(&mut random));
        RunId::new(now, random)
    }

    /// A name for this process. Random, because host names are shared more often than people think.
    pub fn node_name(&self) -> String {
        format!("node-{:012x}", self.with(|rng| rng.next_u64() >> 16))
    }

    /// Full jitter: uniformly between zero and the limit.
    pub fn jitter(&self, limit: std::time::Duration) -> std::time::Duration {
        limit.mul_f64(self.with(|rng| rng.random::<f64>()))
    }
}
