//! Texts of keys as lists and AWS's clients see them. What a key itself looks like is `servo_wire::key`.

use servo_wire::key::{SECRET_BYTES, letters};

/// So much of a key is shown in lists.
const SHOWN_CHARS: usize = 8;

/// The letters of access key ids, as AWS's clients expect them.
const ACCESS_LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ACCESS_PREFIX: &str = "SVOA";
pub(super) const ACCESS_BYTES: usize = 16;

pub(super) fn shown(key: &str) -> String {
    key.chars().take(SHOWN_CHARS).collect()
}

pub(super) fn access_key_id(random: [u8; ACCESS_BYTES]) -> String {
    let letters = random.iter().map(|byte| char::from(ACCESS_LETTERS[usize::from(byte % 32)]));
    ACCESS_PREFIX.chars().chain(letters).collect()
}

pub(super) fn access_secret(random: [u8; SECRET_BYTES]) -> String {
    letters(&random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_key_fits_the_clients() {
        let id = access_key_id([255; ACCESS_BYTES]);
        assert_eq!(id.len(), 20);
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(access_secret([0; SECRET_BYTES]).len(), 40);
    }
}
