//! The check that any bytes whatever must pass. The fuzz target includes this file, so it uses nothing but the crate
//! under test and `serde_json`, whose reader is the oracle: it takes the text apart level by level and keeps numbers
//! as the text that they are, so no precision is lost on the way to the comparison.

use std::fmt;

use serde::de::{self, Deserializer as _, MapAccess};
use serde_json::value::RawValue;
use servo_canon::canonicalize;

/// Panics if `bytes` show a defect: a crash, a text that only one of the two readers accepts, or a canonical form that
/// is not stable, not in order, or not the same data.
pub(crate) fn check_canonical_json(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let canonical = match (canonicalize(text), read(text, 0)) {
        (Err(_), None) => return,
        (Err(error), Some(_)) => panic!("refused valid json {text:?}: {error}"),
        (Ok(canonical), None) => panic!("accepted {text:?} as {canonical:?}"),
        (Ok(canonical), Some(tree)) => {
            let back = read(&canonical, 0).expect("canonical text parses");
            assert_same(&tree, &back);
            canonical
        }
    };
    assert_eq!(canonicalize(&canonical).as_ref(), Ok(&canonical), "not idempotent for {text:?}");
    // The reader trims white space around tokens, so equal length means that there was none to trim.
    assert_eq!(written_len(&read(&canonical, 0).expect("parsed above")), canonical.len(), "not minimal: {canonical:?}");
}

/// JSON as read by the oracle; keys in the order of the text.
pub(crate) enum Tree<'a> {
    Word(&'a str),
    Number(&'a str),
    Text(String),
    List(Vec<Tree<'a>>),
    Object(Vec<(String, Tree<'a>)>),
}

/// `None` if the text has no canonical form.
pub(crate) fn read<'a>(text: &'a str, depth: usize) -> Option<Tree<'a>> {
    let raw: &'a RawValue = serde_json::from_str(text).ok()?;
    let token = raw.get();
    Some(match token.as_bytes()[0] {
        b'{' | b'[' if depth + 1 >= servo_canon::DEPTH_LIMIT => return None,
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(token).ok()?;
            Tree::List(items.into_iter().map(|item| read(item.get(), depth + 1)).collect::<Option<_>>()?)
        }
        b'{' => {
            let mut reader = serde_json::Deserializer::from_str(token);
            let entries = reader.deserialize_map(Entries).ok()?;
            let mut keys: Vec<_> = entries.iter().map(|(key, _)| key).collect();
            keys.sort();
            keys.dedup();
            if keys.len() < entries.len() {
                return None;
            }
            let read_entry = |(key, value): (String, &'a RawValue)| Some((key, read(value.get(), depth + 1)?));
            Tree::Object(entries.into_iter().map(read_entry).collect::<Option<_>>()?)
        }
        b'"' => Tree::Text(serde_json::from_str(token).ok()?),
        b'-' | b'0'..=b'9' => {
            let finite = token.parse::<f64>().expect("a json number is a rust float").is_finite();
            if !finite {
                return None;
            }
            Tree::Number(token)
        }
        _ => Tree::Word(token),
    })
}

/// Collects the entries of an object with its duplicates, which a map would hide.
struct Entries;

impl<'de> de::Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// `canonical` holds the data of `source`, with ascending keys.
fn assert_same(source: &Tree<'_>, canonical: &Tree<'_>) {
    match (source, canonical) {
        (Tree::Word(a), Tree::Word(b)) => assert_eq!(a, b),
        (Tree::Text(a), Tree::Text(b)) => assert_eq!(a, b),
        (Tree::Number(a), Tree::Number(b)) => assert_same_number(a, b),
        (Tree::List(a), Tree::List(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| assert_same(a, b));
        }
        (Tree::Object(a), Tree::Object(b)) => {
            // Code points, not `str` comparison, so that the oracle states the order in its own way.
            let mut sorted: Vec<_> =
                a.iter().map(|(key, value)| (key.chars().collect::<Vec<_>>(), key, value)).collect();
            sorted.sort_by(|(a, ..), (b, ..)| a.cmp(b));
            let expected: Vec<_> = sorted.iter().map(|(_, key, _)| *key).collect();
            let found: Vec<_> = b.iter().map(|(key, _)| key).collect();
            assert_eq!(expected, found);
            sorted.iter().zip(b).for_each(|((.., a), (_, b))| assert_same(a, b));
        }
        _ => panic!("the canonical form holds another kind of value"),
    }
}

fn assert_same_number(source: &str, canonical: &str) {
    let is_integer = |token: &str| token.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    if is_integer(source) {
        assert_eq!(canonical, if source == "-0" { "0" } else { source }, "an integer changed");
    } else {
        let [a, b] = [source, canonical].map(|token| token.parse::<f64>().expect("a json number is a rust float"));
        assert_eq!(a, b, "{source} became {canonical}");
    }
}

/// Bytes that the tree needs without white space and with only the escapes that JSON requires.
fn written_len(tree: &Tree<'_>) -> usize {
    let commas = |len: usize| len.saturating_sub(1);
    match tree {
        Tree::Word(token) | Tree::Number(token) => token.len(),
        Tree::Text(text) => text_len(text),
        Tree::List(items) => 2 + commas(items.len()) + items.iter().map(written_len).sum::<usize>(),
        Tree::Object(entries) => {
            let entry_len = |(key, value): &(String, Tree<'_>)| text_len(key) + 1 + written_len(value);
            2 + commas(entries.len()) + entries.iter().map(entry_len).sum::<usize>()
        }
    }
}

fn text_len(text: &str) -> usize {
    let char_len = |char: char| match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => char.len_utf8(),
    };
    2 + text.chars().map(char_len).sum::<usize>()
}
