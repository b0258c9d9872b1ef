//! What a key looks like: `svo_`, 40 random characters, and 6 that are computed from them, so that a misspelt key is known
//! without asking the store and a leaked one is found by those who search for such texts.
//!
//! Nobody thinks such a text up: whoever has one has something that cannot be guessed.

use servo_canon::Digest;

pub const PREFIX: &str = "svo_";
/// Random bytes; 240 bits, which make 40 characters.
pub const SECRET_BYTES: usize = 30;
const RANDOM_CHARS: usize = 40;
const CHECK_CHARS: usize = 6;

/// The letters of base64 that stand in URLs as they are.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub fn api_key(random: [u8; SECRET_BYTES]) -> String {
    let body = format!("{PREFIX}{}", letters(&random));
    let check = check(&body);
    body + &check
}

/// Whether a text can be one of our keys at all.
pub fn is_api_key(text: &str) -> bool {
    if text.len() != PREFIX.len() + RANDOM_CHARS + CHECK_CHARS || !text.is_ascii() || !text.starts_with(PREFIX) {
        return false;
    }
    let (body, found) = text.split_at(PREFIX.len() + RANDOM_CHARS);
    check(body) == found
}

/// Bytes by threes as four letters; what is left over at the end is left out.
pub fn letters(bytes: &[u8]) -> String {
    let four = |three: &[u8]| {
        let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[(number >> shift & 63) as usize]))
    };
    bytes.chunks_exact(3).flat_map(four).collect()
}

fn check(body: &str) -> String {
    let digest = Digest::of_parts(&["servo/key-check/1", body], '|');
    letters(digest.as_bytes()).chars().take(CHECK_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_and_a_misspelt_one_is_not() {
        let key = api_key([7; SECRET_BYTES]);
        assert_eq!(key.len(), 50);
        assert!(is_api_key(&key));
        for at in 0..key.len() {
            let mut letters = key.clone().into_bytes();
            letters[at] = if letters[at] == b'x' { b'y' } else { b'x' };
            let typo = String::from_utf8(letters).unwrap();
            assert!(!is_api_key(&typo), "{at}");
            assert!(!is_api_key(&key[..at]));
        }
        assert!(!is_api_key(&format!("{key}x")) && !is_api_key(&"ä".repeat(25)));
    }

    /// Keys that were made before are keys.
    #[test]
    fn letters_are_those_of_base64() {
        assert_eq!(letters(b"\x00\x10\x83\x10\x51\x87\xfb\xff\xbf"), "ABCDEFGH-_-_");
        assert_eq!(letters(b"servo!"), "c2Vydm8h");
    }
}
