//! Time and numbers that look random, the same on every replay.

use servo_replay::SubType;

use super::step::instant;
use crate::protocol::{FromChild, ToChild};
use crate::worker::session::Session;

/// Milliseconds since 1970. A workflow records them; nobody waits for the record.
pub(crate) fn now(session: &Session) -> starlark::Result<i64> {
    let ask = || {
        let mut link = session.link.borrow_mut();
        link.send(&FromChild::Now, &[]);
        match link.receive().0 {
            ToChild::Now { millis } => millis,
            other => crate::worker::broken(&format!("expected the time, got {other:?}")),
        }
    };
    if !session.is_durable() || session.is_in_step() {
        return Ok(ask());
    }
    let text = instant(session, (SubType::Step, "now"), || Ok(ask().to_string()))?;
    Ok(text.parse().unwrap_or_default())
}

/// A version 8 UUID: custom bits.
pub(crate) fn uuid(session: &Session) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&session.draw("uuid")[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// From 0 up to, and without, 1.
pub(crate) fn random(session: &Session) -> f64 {
    let [a, b, c, d, e, f, g, h, ..] = session.draw("random");
    let bits = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
    let number = bits as f64 / (1_u64 << 53) as f64;
    number
}
