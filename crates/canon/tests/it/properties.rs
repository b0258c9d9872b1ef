//! Properties over arbitrary data. The data has a model and a writer of its own, so the crate is not its own oracle.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::ser::{Serialize, SerializeMap, Serializer};
use servo_canon::{Digest, canonicalize, fingerprint, to_canonical};

use crate::check::{Tree, read};

#[derive(Clone, Debug)]
enum Doc {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
    List(Vec<Doc>),
    /// Distinct keys in arbitrary order.
    Object(Vec<(String, Doc)>),
}

impl Serialize for Doc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Doc::Null => serializer.serialize_unit(),
            Doc::Bool(value) => serializer.serialize_bool(*value),
            Doc::Int(value) => serializer.serialize_i64(*value),
            Doc::UInt(value) => serializer.serialize_u64(*value),
            Doc::Float(value) => serializer.serialize_f64(*value),
            Doc::Text(text) => serializer.serialize_str(text),
            Doc::List(items) => serializer.collect_seq(items),
            Doc::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// Characters around every border that matters: escapes, ASCII, the lengths of UTF-8, the surrogates of UTF-16.
fn text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(
        "\0\u{8}\t\n\r\u{1f} \"/\\Aaz~\u{7f}\u{80}é\u{7ff}\u{800}中\u{d7ff}\u{e000}\u{fffd}\u{ffff}\u{10000}🎉\u{10ffff}"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(prop_oneof![3 => special, 1 => any::<char>()], 0..6).prop_map(String::from_iter)
}

fn doc() -> impl Strategy<Value = Doc> {
    let leaf = prop_oneof![
        Just(Doc::Null),
        any::<bool>().prop_map(Doc::Bool),
        any::<i64>().prop_map(Doc::Int),
        any::<u64>().prop_map(Doc::UInt),
        (-1_000i64..1_000).prop_map(|n| Doc::Float(n as f64 / 8.0)),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(Doc::Float),
        text().prop_map(Doc::Text),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        let entries = prop::collection::btree_map(text(), inner.clone(), 0..8).prop_map(BTreeMap::into_iter);
        let object = entries.prop_map(Vec::from_iter).prop_shuffle().prop_map(Doc::Object);
        prop_oneof![prop::collection::vec(inner, 0..8).prop_map(Doc::List), object]
    })
}

/// Reverses and rotates the entries of every object.
fn permuted(doc: &Doc, turn: usize) -> Doc {
    match doc {
        Doc::List(items) => Doc::List(items.iter().map(|item| permuted(item, turn)).collect()),
        Doc::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().map(|(k, v)| (k.clone(), permuted(v, turn))).rev().collect();
            let turn = turn % entries.len().max(1);
            entries.rotate_left(turn);
            Doc::Object(entries)
        }
        leaf => leaf.clone(),
    }
}

/// Another JSON text of the same data: white space everywhere, every character of every string escaped.
fn verbose(doc: &Doc, out: &mut String) {
    let quote = |text: &str, out: &mut String| {
        out.push('"');
        text.encode_utf16().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        out.push('"');
    };
    out.push_str("\r\n\t ");
    match doc {
        Doc::Null => out.push_str("null"),
        Doc::Bool(value) => out.push_str(&value.to_string()),
        Doc::Int(value) => out.push_str(&value.to_string()),
        Doc::UInt(value) => out.push_str(&value.to_string()),
        Doc::Float(value) => out.push_str(&format!("{value:.20E}")),
        Doc::Text(text) => quote(text, out),
        Doc::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { " ," });
                verbose(item, out);
            }
            out.push(']');
        }
        Doc::Object(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index == 0 { "\n" } else { " , " });
                quote(key, out);
                out.push_str(" :");
                verbose(value, out);
            }
            out.push('}');
        }
    }
    out.push(' ');
}

/// The oracle's reading of a canonical text is the document, with keys in order.
fn is_reading_of(tree: &Tree<'_>, doc: &Doc) -> bool {
    match (tree, doc) {
        (Tree::Word("null"), Doc::Null) => true,
        (Tree::Word(word), Doc::Bool(value)) => *word == value.to_string(),
        (Tree::Number(token), Doc::Int(value)) => *token == value.to_string(),
        (Tree::Number(token), Doc::UInt(value)) => *token == value.to_string(),
        (Tree::Number(token), Doc::Float(value)) => token.parse() == Ok(*value),
        (Tree::Text(read), Doc::Text(text)) => read == text,
        (Tree::List(read), Doc::List(items)) => {
            read.len() == items.len() && read.iter().zip(items).all(|(a, b)| is_reading_of(a, b))
        }
        (Tree::Object(read), Doc::Object(entries)) => {
            let by_bytes: BTreeMap<&[u8], &Doc> = entries.iter().map(|(k, v)| (k.as_bytes(), v)).collect();
            read.len() == by_bytes.len()
                && read.iter().zip(by_bytes).all(|((k, a), (key, b))| k.as_bytes() == key && is_reading_of(a, b))
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn permuted_keys_give_equal_bytes_and_digests(doc in doc(), turn in 0usize..8) {
        let canonical = to_canonical(&doc).unwrap();
        let other = permuted(&doc, turn);
        prop_assert_eq!(&to_canonical(&other).unwrap(), &canonical);
        prop_assert_eq!(fingerprint(&other).unwrap(), Digest::of(canonical.as_bytes()));
    }

    #[test]
    fn every_text_of_the_same_data_has_one_canonical_form(doc in doc()) {
        let canonical = to_canonical(&doc).unwrap();
        let mut text = String::new();
        verbose(&doc, &mut text);
        let compact = serde_json::to_string(&doc).unwrap();
        let pretty = serde_json::to_string_pretty(&doc).unwrap();
        for text in [&text, &compact, &pretty, &canonical] {
            prop_assert_eq!(&canonicalize(text).unwrap(), &canonical);
        }
    }

    #[test]
    fn the_canonical_form_reads_back_as_the_value(doc in doc()) {
        let canonical = to_canonical(&doc).unwrap();
        let tree = read(&canonical, 0).expect("canonical text parses");
        prop_assert!(is_reading_of(&tree, &doc), "{:?} became {}", doc, canonical);
    }
}
