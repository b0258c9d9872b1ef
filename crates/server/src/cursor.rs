//! Paging cursors: where a list goes on, authenticated and bound to whoever asked for what.
//!
//! `base64url(payload || HMAC-SHA256(secret, purpose, tenant, filter, payload))`. The MAC is checked before anything of
//! the payload is read, and is never cut.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use servo_model::{EventId, RunId, TenantId, codes};
use sha2::Sha256;

use crate::error::{Answer, ApiError};

/// Purpose, version and order in one: a cursor of another kind of list never fits.
const RUNS: &str = "servo/cursor/1/runs/newest-first";
const AUDIT: &str = "servo/cursor/1/audit/newest-first";
const MAC_BYTES: usize = 32;
/// The longest run id and its MAC, with room.
const CURSOR_CHARS_MAX: usize = 512;

/// What a cursor belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding<'a> {
    pub tenant: &'a TenantId,
    /// Every filter of the query, by name; absent ones as `None`.
    pub filters: &'a [(&'a str, Option<&'a str>)],
}

#[derive(Clone)]
pub(crate) struct CursorKey([u8; 32]);

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey")
    }
}

impl CursorKey {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    pub(crate) fn seal(&self, binding: Binding<'_>, last: &RunId) -> String {
        self.close(RUNS, binding, last.as_str().as_bytes())
    }

    /// The run to go on behind. Whatever is wrong, the answer is the same.
    pub(crate) fn open(&self, binding: Binding<'_>, text: &str) -> Answer<RunId> {
        let payload = self.payload(RUNS, binding, text)?;
        let last = std::str::from_utf8(&payload).map_err(|_| unknown())?;
        RunId::parse(last).map_err(|_| unknown())
    }

    pub(crate) fn seal_audit(&self, binding: Binding<'_>, last: EventId) -> String {
        self.close(AUDIT, binding, last.as_bytes())
    }

    /// The audit entry to go on behind.
    pub(crate) fn open_audit(&self, binding: Binding<'_>, text: &str) -> Answer<EventId> {
        let payload = self.payload(AUDIT, binding, text)?;
        EventId::from_slice(&payload).map_err(|_| unknown())
    }

    fn close(&self, purpose: &str, binding: Binding<'_>, payload: &[u8]) -> String {
        let mac = self.mac(purpose, binding, payload).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([payload, &mac].concat())
    }

    fn payload(&self, purpose: &str, binding: Binding<'_>, text: &str) -> Answer<Vec<u8>> {
        if text.len() > CURSOR_CHARS_MAX {
            return Err(unknown());
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| unknown())?;
        let split = bytes.len().checked_sub(MAC_BYTES).ok_or_else(unknown)?;
        let mac = bytes.split_off(split);
        self.mac(purpose, binding, &bytes).verify_slice(&mac).map_err(|_| unknown())?;
        Ok(bytes)
    }

    /// Every part goes in with its length, so that no two lists of parts give the same bytes.
    fn mac(&self, purpose: &str, binding: Binding<'_>, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a MAC takes a key of any length");
        let mut part = |bytes: &[u8]| {
            mac.update(&(bytes.len() as u64).to_be_bytes());
            mac.update(bytes);
        };
        part(purpose.as_bytes());
        part(binding.tenant.as_str().as_bytes());
        for (name, value) in binding.filters {
            part(name.as_bytes());
            part(if value.is_some() { b"=" } else { b"" });
            part(value.unwrap_or_default().as_bytes());
        }
        part(payload);
        mac
    }
}

fn unknown() -> ApiError {
    ApiError::new(codes::INVALID_CURSOR).detail("cursor: begin again without one")
}

/// S13: nothing but what was sealed is opened, and only where it belongs.
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).unwrap()
    }

    fn run() -> impl Strategy<Value = RunId> {
        "[A-Za-z0-9_-]{1,128}".prop_map(|text| RunId::parse(&text).unwrap())
    }

    type Filter = Option<String>;

    fn filter() -> impl Strategy<Value = Filter> {
        proptest::option::of("[a-z=|\0]{0,8}")
    }

    fn bind(values: &(Filter, Filter)) -> [(&str, Option<&str>); 2] {
        [("status", values.0.as_deref()), ("planId", values.1.as_deref())]
    }

    proptest! {
        #[test]
        fn a_cursor_opens_where_it_belongs_and_nowhere_else(
            run in run(), values in (filter(), filter()), others in (filter(), filter()), secret: [u8; 32],
        ) {
            let key = CursorKey::new(secret);
            let (filters, other_filters) = (bind(&values), bind(&others));
            let (mine, foreign) = (tenant("acme"), tenant("globex"));
            let cursor = key.seal(Binding { tenant: &mine, filters: &filters }, &run);
            prop_assert_eq!(&key.open(Binding { tenant: &mine, filters: &filters }, &cursor).unwrap(), &run);
            let code = |binding: Binding<'_>| key.open(binding, &cursor).unwrap_err().problem.code;
            prop_assert_eq!(code(Binding { tenant: &foreign, filters: &filters }), "INVALID_CURSOR");
            if values != others {
                prop_assert_eq!(code(Binding { tenant: &mine, filters: &other_filters }), "INVALID_CURSOR");
            }
            prop_assert_eq!(
                key.open_audit(Binding { tenant: &mine, filters: &filters }, &cursor).unwrap_err().problem.code,
                "INVALID_CURSOR", "a cursor of another list"
            );
            let mut changed = secret;
            changed[0] ^= 1;
            let other_key = CursorKey::new(changed);
            let binding = Binding { tenant: &mine, filters: &filters };
            prop_assert_eq!(other_key.open(binding, &cursor).unwrap_err().problem.code, "INVALID_CURSOR");
        }

        #[test]
        fn no_bit_can_be_flipped(run in run(), secret: [u8; 32]) {
            let key = CursorKey::new(secret);
            let mine = tenant("acme");
            let binding = Binding { tenant: &mine, filters: &[] };
            let sealed = URL_SAFE_NO_PAD.decode(key.seal(binding, &run)).unwrap();
            for bit in 0..sealed.len() * 8 {
                let mut bytes = sealed.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let error = key.open(binding, &URL_SAFE_NO_PAD.encode(bytes)).unwrap_err();
                prop_assert_eq!(error.problem.code, "INVALID_CURSOR");
            }
        }

        /// Flips in the text itself, and any text at all.
        #[test]
        fn texts_are_refused_alike(run in run(), at: prop::sample::Index, bit in 0u8..8, noise in ".{0,600}") {
            let key = CursorKey::new([7; 32]);
            let mine = tenant("acme");
            let binding = Binding { tenant: &mine, filters: &[] };
            let sealed = key.seal(binding, &run);
            let mut bytes = sealed.clone().into_bytes();
            let index = at.index(bytes.len());
            bytes[index] ^= 1 << bit;
            let texts = [String::from_utf8_lossy(&bytes).into_owned(), noise, sealed[..index].to_owned(), format!("{sealed}A")];
            for text in texts {
                let error = key.open(binding, &text).unwrap_err();
                prop_assert_eq!(error.problem.code, "INVALID_CURSOR");
            }
        }
    }
}
