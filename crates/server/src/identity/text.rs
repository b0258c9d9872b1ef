//! What a key looks like: `svo_`, 40 random characters, and 6 that are computed from them, so that a misspelt key is known
//! without asking the store and a leaked one is found by those who search for such texts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use servo_canon::Digest;

const PREFIX: &str = "svo_";
/// Random bytes; 240 bits, which make 40 characters.
pub(super) const SECRET_BYTES: usize = 30;
const RANDOM_CHARS: usize = 40;
const CHECK_CHARS: usize = 6;
/// So much of a key is shown in lists.
const SHOWN_CHARS: usize = 8;

/// The letters of access key ids, as AWS's clients expect them.
const ACCESS_LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ACCESS_PREFIX: &str = "SVOA";
pub(super) const ACCESS_BYTES: usize = 16;

pub(super) fn api_key(random: [u8; SECRET_BYTES]) -> String {
    let body = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let check = check(&body);
    body + &check
}

pub(super) fn shown(key: &str) -> String {
    key.chars().take(SHOWN_CHARS).collect()
}

/// Whether a text can be one of our keys at all.
pub(super) fn is_api_key(text: &str) -> bool {
    if text.len() != PREFIX.len() + RANDOM_CHARS + CHECK_CHARS || !text.is_ascii() || !text.starts_with(PREFIX) {
        return false;
    }
    let (body, found) = text.split_at(PREFIX.len() + RANDOM_CHARS);
    check(body) == found
}

fn check(body: &str) -> String {
    let digest = Digest::of_parts(&["servo/key-check/1", body], '|');
    URL_SAFE_NO_PAD.encode(digest.as_bytes()).chars().take(CHECK_CHARS).collect()
}

pub(super) fn access_key_id(random: [u8; ACCESS_BYTES]) -> String {
    let letters = random.iter().map(|byte| char::from(ACCESS_LETTERS[usize::from(byte % 32)]));
    ACCESS_PREFIX.chars().chain(letters).collect()
}

pub(super) fn access_secret(random: [u8; SECRET_BYTES]) -> String {
    URL_SAFE_NO_PAD.encode(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_and_a_misspelt_one_is_not() {
        let key = api_key([7; SECRET_BYTES]);
        assert_eq!(key.len(), 50);
        assert!(is_api_key(&key));
        assert_eq!(shown(&key), key[..8]);
        for at in 0..key.len() {
            let mut letters = key.clone().into_bytes();
            letters[at] = if letters[at] == b'x' { b'y' } else { b'x' };
            let typo = String::from_utf8(letters).unwrap();
            assert!(!is_api_key(&typo), "{at}");
            assert!(!is_api_key(&key[..at]));
        }
        assert!(!is_api_key(&format!("{key}x")) && !is_api_key(&"ä".repeat(25)));
    }

    #[test]
    fn an_access_key_fits_the_clients() {
        let id = access_key_id([255; ACCESS_BYTES]);
        assert_eq!(id.len(), 20);
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(access_secret([0; SECRET_BYTES]).len(), 40);
    }
}
