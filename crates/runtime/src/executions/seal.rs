//! What callers carry for us: checkpoint tokens, callback ids and page marks. Encrypted and authenticated with the store's
//! secret, so that nothing about them is kept in memory and nothing can be made up.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use servo_canon::Digest;
use servo_model::{RunId, TenantId};

/// Longer texts are not ours. The longest are marks of pages, with a few texts of what stands there.
const CHARS_MAX: usize = 8_192;

#[derive(Clone)]
pub(crate) struct Seal(Arc<LessSafeKey>);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// What is sealed under one purpose opens under no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Token,
    Callback,
    Marker,
    /// A page of a list.
    Page,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Purpose::Token => b"servo/checkpoint-token/1",
            Purpose::Callback => b"servo/callback/1",
            Purpose::Marker => b"servo/marker/1",
            Purpose::Page => b"servo/page/1",
        }
    }
}

/// The right to checkpoint: which invocation, after which checkpoint, and what the handler has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    pub run: RunId,
    pub tenant: TenantId,
    pub invocation: u32,
    pub number: u32,
    pub seen: u64,
    /// The mark of the ARN under which the handler knows the execution. Tokens of earlier releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arn: Option<u64>,
}

/// What tells ARNs apart, in a few bytes.
pub(super) fn mark_of(arn: &str) -> u64 {
    let digest = Digest::of(arn.as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallbackRef {
    pub run: RunId,
    pub tenant: TenantId,
    pub operation: String,
}

impl Seal {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &secret).expect("the key has the algorithm's length");
        Self(Arc::new(LessSafeKey::new(key)))
    }

    pub(crate) fn close<T: Serialize>(&self, purpose: Purpose, nonce: [u8; NONCE_LEN], value: &T) -> String {
        let mut bytes = serde_json::to_vec(value).expect("ids and numbers serialise");
        let sealed = self.0.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(purpose.label()),
            &mut bytes,
        );
        sealed.expect("far below the algorithm's limit");
        let mut out = nonce.to_vec();
        out.append(&mut bytes);
        STANDARD.encode(out)
    }

    /// Whatever is wrong, the answer is the same.
    pub(crate) fn open<T: DeserializeOwned>(&self, purpose: Purpose, text: &str) -> Option<T> {
        if text.len() > CHARS_MAX {
            return None;
        }
        let mut bytes = STANDARD.decode(text).ok()?;
        if bytes.len() <= NONCE_LEN {
            return None;
        }
        let mut sealed = bytes.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&bytes).ok()?;
        let plain = self.0.open_in_place(nonce, Aad::from(purpose.label()), &mut sealed).ok()?;
        serde_json::from_slice(plain).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        let tenant = TenantId::parse("acme").unwrap();
        Token { run: RunId::parse("r").unwrap(), tenant, invocation: 2, number: 3, seen: 17, arn: Some(mark_of("arn")) }
    }

    /// A token that a handler got before an upgrade is still good.
    #[test]
    fn a_token_without_an_arn_opens() {
        let seal = Seal::new([7; 32]);
        let earlier = serde_json::json!({"run": "r", "tenant": "acme", "invocation": 2, "number": 3, "seen": 17});
        let text = seal.close(Purpose::Token, [1; NONCE_LEN], &earlier);
        assert_eq!(seal.open(Purpose::Token, &text), Some(Token { arn: None, ..token() }));
    }

    /// S13: what was not sealed here, for this, does not open.
    #[test]
    fn only_what_was_sealed_for_a_purpose_opens_for_it() {
        let seal = Seal::new([7; 32]);
        let text = seal.close(Purpose::Token, [1; NONCE_LEN], &token());
        assert_eq!(seal.open::<Token>(Purpose::Token, &text), Some(token()));
        assert_eq!(seal.open::<Token>(Purpose::Callback, &text), None);
        assert_eq!(Seal::new([8; 32]).open::<Token>(Purpose::Token, &text), None);
        for wrong in ["", "AAAA", "no base64!", &"A".repeat(10_000)] {
            assert_eq!(seal.open::<Token>(Purpose::Token, wrong), None);
        }
        let mut bytes = STANDARD.decode(&text).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(seal.open::<Token>(Purpose::Token, &STANDARD.encode(&bytes)), None, "byte {at}");
            bytes[at] ^= 1;
        }
    }
}
