//! Digests: known answers, the one text form, serde.

use std::collections::BTreeMap;

use servo_canon::{Digest, Error, fingerprint};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn known_answers_of_sha256() {
    assert_eq!(Digest::of(b"").to_string(), EMPTY);
    assert_eq!(Digest::of(b"abc").to_string(), ABC);
}

#[test]
fn parts_hash_like_the_joined_text() {
    let joined = |parts: &[&str], separator: char| Digest::of(parts.join(&separator.to_string()).as_bytes());
    for separator in ['|', 'ß', '中', '🎉'] {
        for parts in [&[][..], &[""], &["a"], &["a", "b"], &["", ""], &["", "größe", ""], &["a|b", "c"]] {
            assert_eq!(Digest::of_parts(parts, separator), joined(parts, separator), "{parts:?} by {separator}");
        }
    }
    assert_ne!(Digest::of_parts(&["a", "b"], '|'), Digest::of_parts(&["ab"], '|'));
}

#[test]
fn text_form_is_one_in_display_debug_parse_and_serde() {
    let digest = Digest::of(b"abc");
    assert_eq!(format!("{digest}"), ABC);
    assert_eq!(format!("{digest:?}"), ABC);
    assert_eq!(Digest::parse(ABC), Ok(digest));
    assert_eq!(ABC.parse(), Ok(digest));
    assert_eq!(serde_json::to_string(&digest).unwrap(), format!("\"{ABC}\""));
    assert_eq!(serde_json::from_str::<Digest>(&format!("\"{ABC}\"")).unwrap(), digest);
    // An owned string takes another way through serde than a borrowed one.
    assert_eq!(serde_json::from_value::<Digest>(ABC.into()).unwrap(), digest);
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    assert_eq!(format!("{digest:>66}"), format!("  {ABC}"));
}

#[test]
fn every_byte_has_its_two_digits() {
    for byte in 0..=u8::MAX {
        let digest = Digest::from_bytes([byte; 32]);
        assert_eq!(digest.to_string(), format!("{byte:02x}").repeat(32));
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest));
    }
}

#[test]
fn other_spellings_are_refused() {
    let upper = ABC.to_uppercase();
    let long = format!("{ABC}0");
    let longer = format!("{ABC}00");
    let spaced = format!(" {}", &ABC[1..]);
    let wide = format!("{}é", &ABC[2..]);
    for text in ["", "0", &ABC[1..], &ABC[2..], &long, &longer, &upper, &spaced, &wide, &ABC.replace('a', "g")] {
        assert_eq!(Digest::parse(text), Err(Error::NotADigest), "{text:?}");
        assert!(serde_json::from_value::<Digest>(text.into()).is_err(), "{text:?}");
    }
    assert!(serde_json::from_str::<Digest>("7").is_err());
    // The neighbours of the accepted ranges of digits.
    for wrong in ['/', ':', '`', 'g', 'A', 'F'] {
        assert_eq!(Digest::parse(&wrong.to_string().repeat(64)), Err(Error::NotADigest));
    }
}

#[test]
fn fingerprint_is_the_hash_of_the_canonical_form() {
    let value = serde_json::json!({"tenant": "acme", "date": "2025-01-15"});
    let expected = Digest::of(br#"{"date":"2025-01-15","tenant":"acme"}"#);
    assert_eq!(fingerprint(&value), Ok(expected));
    assert_eq!(fingerprint(&BTreeMap::from([("tenant", "acme"), ("date", "2025-01-15")])), Ok(expected));
    assert_eq!(fingerprint(&f64::NAN), Err(Error::NotFinite));
    assert_eq!(fingerprint("abc"), Ok(Digest::of(b"\"abc\"")));
}

#[test]
fn digests_order_like_their_texts() {
    let mut digests: Vec<_> = (0..100u8).map(|n| Digest::of(&[n])).collect();
    digests.sort();
    assert!(digests.is_sorted_by_key(Digest::to_string));
}
