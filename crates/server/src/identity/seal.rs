//! Secrets of access keys at rest: whoever checks a signature needs the secret itself, so it is kept, sealed under a key of
//! this store and bound to the tenant and the access key that it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use servo_model::TenantId;
use sha2::Sha256;

/// The store's secret has other uses; what is sealed here opens under no other.
const PURPOSE: &[u8] = b"servo/access-key-secret/1";

pub(super) struct SecretSeal(LessSafeKey);

impl SecretSeal {
    pub(super) fn new(store_secret: &[u8; 32]) -> Self {
        let mut derive = Hmac::<Sha256>::new_from_slice(store_secret).expect("a MAC takes a key of any length");
        derive.update(PURPOSE);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &derive.finalize().into_bytes());
        Self(LessSafeKey::new(key.expect("the key has the algorithm's length")))
    }

    pub(super) fn close(&self, nonce: [u8; NONCE_LEN], tenant: &TenantId, access_key: &str, secret: &str) -> String {
        let mut bytes = secret.as_bytes().to_vec();
        let bound = Aad::from(bound(tenant, access_key));
        let sealed = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut bytes);
        sealed.expect("far below the algorithm's limit");
        STANDARD.encode([&nonce[..], &bytes].concat())
    }

    pub(super) fn open(&self, tenant: &TenantId, access_key: &str, sealed: &str) -> Option<String> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(bound(tenant, access_key)), &mut sealed).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

/// Neither part can hold the separator.
fn bound(tenant: &TenantId, access_key: &str) -> String {
    format!("{tenant}|{access_key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19: what was sealed for one key of one tenant opens for no other.
    #[test]
    fn a_secret_opens_only_where_it_belongs() {
        let (acme, globex) = (TenantId::parse("acme").unwrap(), TenantId::parse("globex").unwrap());
        let seal = SecretSeal::new(&[7; 32]);
        let sealed = seal.close([1; NONCE_LEN], &acme, "SVOA1", "hush");
        assert!(!sealed.contains("hush"));
        assert_eq!(seal.open(&acme, "SVOA1", &sealed).as_deref(), Some("hush"));
        assert_eq!(seal.open(&globex, "SVOA1", &sealed), None);
        assert_eq!(seal.open(&acme, "SVOA2", &sealed), None);
        assert_eq!(SecretSeal::new(&[8; 32]).open(&acme, "SVOA1", &sealed), None);
        for wrong in ["", "AAAA", "no base64!"] {
            assert_eq!(seal.open(&acme, "SVOA1", wrong), None);
        }
        let mut bytes = STANDARD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(seal.open(&acme, "SVOA1", &STANDARD.encode(&bytes)), None, "byte {at}");
            bytes[at] ^= 1;
        }
    }
}
