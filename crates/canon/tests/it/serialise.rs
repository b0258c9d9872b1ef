//! serde's mapping to JSON: what a value becomes here is what it becomes on the wire.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use serde_json::value::RawValue;
use servo_canon::{Error, canonicalize, to_canonical};

#[derive(Serialize)]
struct Unit;

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Newtype(String);

#[derive(Serialize)]
struct Pair(u8, &'static str);

#[derive(Serialize)]
struct Inner {
    zeta: u8,
    alpha: Option<u8>,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    One(u8),
    Two(u8, u8),
    Named { y: u8, x: u8 },
}

#[derive(Serialize)]
struct Everything {
    unit: Unit,
    newtype: Newtype,
    pair: Pair,
    inner: Inner,
    kinds: Vec<Kind>,
    tuple: (i8, i16, i32, i64, i128, u16, u32, u64, u128),
    floats: (f32, f64),
    flag: bool,
    letter: char,
    none: Option<u8>,
    nothing: (),
    by_number: BTreeMap<u64, char>,
    by_flag: BTreeMap<bool, u8>,
    by_letter: BTreeMap<char, u8>,
    by_kind: BTreeMap<Kind, u8>,
    by_newtype: BTreeMap<Newtype, u8>,
    by_option: BTreeMap<Option<u8>, u8>,
    #[serde(flatten)]
    flat: BTreeMap<&'static str, u8>,
    raw: Box<RawValue>,
}

fn everything() -> Everything {
    Everything {
        unit: Unit,
        newtype: Newtype("n\n".into()),
        pair: Pair(1, "two"),
        inner: Inner { zeta: 1, alpha: Some(2) },
        kinds: vec![Kind::Plain, Kind::One(1), Kind::Two(1, 2), Kind::Named { y: 1, x: 2 }],
        tuple: (-1, -2, -3, i64::MIN, i128::from(i64::MIN), 1, 2, u64::MAX, u128::from(u64::MAX)),
        floats: (0.1, 2.50),
        flag: true,
        letter: 'ß',
        none: None,
        nothing: (),
        by_number: BTreeMap::from([(9, 'n'), (10, 't')]),
        by_flag: BTreeMap::from([(true, 1), (false, 0)]),
        by_letter: BTreeMap::from([('b', 1), ('a', 0)]),
        by_kind: BTreeMap::from([(Kind::Plain, 1)]),
        by_newtype: BTreeMap::from([(Newtype("k".into()), 1)]),
        by_option: BTreeMap::from([(Some(1), 1)]),
        flat: BTreeMap::from([("flat_b", 1), ("flat_a", 2)]),
        raw: RawValue::from_string(r#"{ "y" : 1.0, "x" : [ 1e2 ] }"#.into()).expect("it is json"),
    }
}

#[test]
fn a_value_becomes_the_canonical_form_of_its_ordinary_json() {
    let wire = serde_json::to_string(&everything()).unwrap();
    let canonical = to_canonical(&everything()).unwrap();
    assert_eq!(Ok(&canonical), canonicalize(&wire).as_ref());
    assert_eq!(
        canonical,
        concat!(
            r#"{"by_flag":{"false":0,"true":1},"by_kind":{"Plain":1},"by_letter":{"a":0,"b":1},"by_newtype":{"k":1},"#,
            r#""by_number":{"10":"t","9":"n"},"by_option":{"1":1},"flag":true,"flat_a":2,"flat_b":1,"floats":[0.1,2.5],"#,
            r#""inner":{"alpha":2,"zeta":1},"kinds":["Plain",{"One":1},{"Two":[1,2]},{"Named":{"x":2,"y":1}}],"#,
            r#""letter":"ß","newtype":"n\n","none":null,"nothing":null,"pair":[1,"two"],"raw":{"x":[100],"y":1},"#,
            r#""tuple":[-1,-2,-3,-9223372036854775808,-9223372036854775808,1,2,18446744073709551615,"#,
            r#"18446744073709551615],"unit":null}"#
        )
    );
}

#[test]
fn bytes_are_numbers_as_in_ordinary_json() {
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&[0, 255])
        }
    }
    assert_eq!(to_canonical(&Bytes).unwrap(), "[0,255]");
}

#[test]
fn raw_values_lose_no_digit_and_keep_the_rules() {
    let raw = |text: &str| to_canonical(&[RawValue::from_string(text.to_owned()).unwrap()]);
    assert_eq!(raw("123456789012345678901234567890").unwrap(), "[123456789012345678901234567890]");
    assert_eq!(raw(r#"{"b":1,"a":{"d":1,"c":2}}"#).unwrap(), r#"[{"a":{"c":2,"d":1},"b":1}]"#);
    assert_eq!(raw(r#"{"b":1,"b":2}"#), Err(Error::DuplicateKey { key: "b".into() }));
    assert_eq!(raw("1e999"), Err(Error::NumberOutOfRange));
    // The levels of the raw text count together with those around it.
    let levels = servo_canon::DEPTH_LIMIT - 1;
    assert_eq!(raw(&format!("{}{}", "[".repeat(levels), "]".repeat(levels))), Err(Error::TooDeep));
    assert!(raw(&format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1))).is_ok());
}

#[test]
fn numbers_handed_over_as_text_are_numbers() {
    /// What a number serialises as when `serde_json` keeps its digits.
    struct Digits(&'static str);
    impl Serialize for Digits {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut number = serializer.serialize_struct("$serde_json::private::Number", 1)?;
            number.serialize_field("$serde_json::private::Number", self.0)?;
            number.end()
        }
    }
    assert_eq!(
        to_canonical(&[Digits("1.50"), Digits("123456789012345678901")]).unwrap(),
        "[1.5,123456789012345678901]"
    );
}

#[test]
fn data_that_looks_like_a_raw_value_stays_data() {
    let text = r#"{"$serde_json::private::RawValue":"[1]"}"#;
    assert_eq!(canonicalize(text).as_deref(), Ok(text));
    let map = BTreeMap::from([("$serde_json::private::RawValue", "[1]")]);
    assert_eq!(to_canonical(&map).as_deref(), Ok(text));
}

#[test]
fn keys_that_are_not_text_are_refused() {
    assert_eq!(to_canonical(&BTreeMap::from([((1, 2), 3)])), Err(Error::KeyNotString));
    assert_eq!(to_canonical(&BTreeMap::from([((), 3)])), Err(Error::KeyNotString));
    assert_eq!(to_canonical(&BTreeMap::from([(None::<u8>, 3)])), Err(Error::KeyNotString));
    assert_eq!(to_canonical(&BTreeMap::from([(vec![1], 3)])), Err(Error::KeyNotString));
    assert_eq!(to_canonical(&BTreeMap::from([(Kind::One(1), 3)])), Err(Error::KeyNotString));

    struct FloatKey;
    impl Serialize for FloatKey {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(1.5, 0)])
        }
    }
    assert_eq!(to_canonical(&FloatKey), Err(Error::KeyNotString));
}
