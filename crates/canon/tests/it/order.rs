//! The order of keys: by UTF-8 bytes of the key as data, at every depth, in time that stays far from quadratic.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, Serializer};
use servo_canon::{Error, canonicalize, to_canonical};

/// A map that serialises its entries in the order given, duplicates included.
struct Entries<'a>(&'a [(&'a str, u32)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[test]
fn keys_sort_by_utf8_and_not_by_utf16() {
    // By UTF-16 units the emoji (d83d de00) would come before both others (e000, fffd).
    let expected = "{\"\u{e000}\":1,\"\u{fffd}\":2,\"\u{1f600}\":3}";
    let entries = Entries(&[("\u{1f600}", 3), ("\u{fffd}", 2), ("\u{e000}", 1)]);
    assert_eq!(to_canonical(&entries).unwrap(), expected);
    assert_eq!(canonicalize("{\"\u{1f600}\":3,\"\u{fffd}\":2,\"\u{e000}\":1}").unwrap(), expected);
    assert_eq!(canonicalize(r#"{"\ud83d\ude00":3,"\ufffd":2,"\ue000":1}"#).unwrap(), expected);
    // Input that is already in order takes a shorter way.
    assert_eq!(canonicalize(expected).unwrap(), expected);
}

#[test]
fn keys_sort_as_data_and_not_as_written() {
    // Written, the line feed and the quote begin with a backslash, which is after the capital letter.
    let expected = r#"{"\n":1,"\"":2,"A":3,"\\":4,"a":5}"#;
    let entries = Entries(&[("a", 5), ("\\", 4), ("A", 3), ("\"", 2), ("\n", 1)]);
    assert_eq!(to_canonical(&entries).unwrap(), expected);
    assert_eq!(canonicalize(r#"{"a":5,"\\":4,"A":3,"\"":2,"\n":1}"#).unwrap(), expected);
    assert_eq!(canonicalize(r#"{"A":3,"\n":1,"\"":2,"\\":4,"a":5}"#).unwrap(), expected);
}

#[test]
fn a_prefix_comes_first_and_the_empty_key_before_all() {
    let expected = r#"{"":1,"a":2,"a\u0000":3,"aa":4,"b":5}"#;
    let entries = Entries(&[("b", 5), ("aa", 4), ("a\0", 3), ("a", 2), ("", 1)]);
    assert_eq!(to_canonical(&entries).unwrap(), expected);
}

#[test]
fn integer_keys_sort_as_text() {
    let map: HashMap<i32, &str> = HashMap::from([(10, "ten"), (9, "nine"), (-1, "minus")]);
    assert_eq!(to_canonical(&map).unwrap(), r#"{"-1":"minus","10":"ten","9":"nine"}"#);
}

#[test]
fn objects_inside_arrays_and_objects_are_sorted_too() {
    let text = r#"{"b":[{"d":1,"c":{"f":[],"e":{}}},[{"z":0,"y":0}]],"a":{"h":null,"g":true}}"#;
    let expected = r#"{"a":{"g":true,"h":null},"b":[{"c":{"e":{},"f":[]},"d":1},[{"y":0,"z":0}]]}"#;
    assert_eq!(canonicalize(text).unwrap(), expected);
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(to_canonical(&value).unwrap(), expected);
}

#[test]
fn duplicate_keys_are_refused_wherever_they_stand() {
    let duplicate = |key: &str| Err(Error::DuplicateKey { key: key.into() });
    assert_eq!(canonicalize(r#"{"a":1,"a":1}"#), duplicate("a"));
    assert_eq!(canonicalize(r#"{"a":1,"b":2,"a":3}"#), duplicate("a"));
    assert_eq!(canonicalize(r#"{"b":1,"a":2,"b":3}"#), duplicate("b"));
    assert_eq!(canonicalize(r#"[{"x":{"":1,"":2}}]"#), duplicate(""));
    assert_eq!(canonicalize(r#"{"a":1,"\u0061":2}"#), duplicate("a"), "an escape does not make another key");
    assert_eq!(to_canonical(&Entries(&[("a", 1), ("b", 2), ("a", 3)])), duplicate("a"));
    // Composed and decomposed characters are different data.
    assert!(canonicalize("{\"\u{e9}\":1,\"e\u{301}\":2}").is_ok());
}

#[test]
fn a_large_object_in_descending_order_is_not_quadratic() {
    const KEYS: usize = 200_000;
    let mut text = String::from("{");
    for n in (0..KEYS).rev() {
        write!(text, "\"k{n:06}\":{n}{}", if n == 0 { "}" } else { "," }).unwrap();
    }
    let canonical = canonicalize(&text).unwrap();
    assert!(canonical.starts_with(r#"{"k000000":0,"k000001":1,"#));
    assert_eq!(canonical.len(), text.len());
    let pairs: HashMap<String, usize> = serde_json::from_str(&text).unwrap();
    assert_eq!(to_canonical(&pairs).unwrap(), canonical);
}

#[test]
fn a_large_text_under_many_unsorted_objects_is_moved_only_once_per_level() {
    let levels = servo_canon::DEPTH_LIMIT - 1;
    let large = "x".repeat(1 << 16);
    let text = format!("{}\"{large}\"{}", r#"{"b":"#.repeat(levels), r#","a":0}"#.repeat(levels));
    let expected = format!("{}\"{large}\"{}", r#"{"a":0,"b":"#.repeat(levels), "}".repeat(levels));
    assert!(canonicalize(&text).unwrap() == expected);
}
