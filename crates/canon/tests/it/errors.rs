//! What has no canonical form, and how that is said.

use serde::ser::{Error as _, Serialize, Serializer};
use servo_canon::{DEPTH_LIMIT, Error, canonicalize, to_canonical};

#[test]
fn what_is_not_exactly_one_json_value_is_refused() {
    for text in [
        "",
        " ",
        "\u{feff}1",
        "1 2",
        "1,",
        "{} {}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[",
        "]",
        "[1",
        "[1}",
        "{",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1",
        "{\"a\":1]",
        "{'a':1}",
        "tru",
        "True",
        "nul",
        "fals\u{0}",
        "truefalse",
        "01",
        "-",
        "-a",
        "+1",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "--1",
        "-01",
        "1_000",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u+123\"",
        "\"\\uD83D\"",
        "\"\\ude00\"",
        "\"\\ud83d\\n\"",
        "\"\\ud83d\\u0041\"",
        "\"\\ud83d\\ud83d\"",
        "\"\\ud83dx\"",
        "\"\n\"",
        "\"\t\"",
        "\"\0\"",
        "[1]//",
        "/**/1",
        "\u{a0}1",
        "1\u{b}",
        "1\u{c}",
    ] {
        assert!(matches!(canonicalize(text), Err(Error::Syntax { .. })), "{text:?}: {:?}", canonicalize(text));
    }
}

#[test]
fn white_space_of_json_is_accepted_and_dropped() {
    let text = " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } , \"c\" : [ ] }\n ";
    assert_eq!(canonicalize(text).unwrap(), r#"{"a":[1,2],"b":{},"c":[]}"#);
}

#[test]
fn syntax_errors_say_where_and_why() {
    let error = canonicalize("{\"größe\": tru}").unwrap_err();
    assert_eq!(error, Error::Syntax { offset: 12, reason: "expected a value" });
    assert_eq!(error.to_string(), "invalid json at byte 12: expected a value");
    assert_eq!(Error::TooDeep.to_string(), "json is nested 128 levels or deeper");
}

/// `levels` arrays or objects around a number, as text.
fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn nesting_is_limited_where_the_ordinary_reader_limits_it() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let step = open.matches(['[', '{']).count();
        let deepest = nested(open, close, (DEPTH_LIMIT - 1) / step);
        assert_eq!(canonicalize(&deepest).as_ref(), Ok(&deepest));
        let value: serde_json::Value = serde_json::from_str(&deepest).expect("the ordinary reader accepts it");
        assert_eq!(to_canonical(&value), Ok(deepest));

        let too_deep = nested(open, close, DEPTH_LIMIT / step);
        assert_eq!(canonicalize(&too_deep), Err(Error::TooDeep));
        assert!(serde_json::from_str::<serde_json::Value>(&too_deep).is_err());
    }
    // Siblings do not add up.
    let wide = format!("[{}[]]", "[[]],".repeat(1_000));
    assert_eq!(canonicalize(&wide).as_ref(), Ok(&wide));
}

#[test]
fn a_million_levels_are_refused_without_using_the_stack() {
    for open in ["[", "{\"a\":"] {
        assert_eq!(canonicalize(&open.repeat(1_000_000)), Err(Error::TooDeep));
    }
}

#[test]
fn deep_values_are_refused_while_they_are_serialised() {
    /// Never ends by itself.
    struct Bottomless;
    impl Serialize for Bottomless {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq([Bottomless])
        }
    }
    assert_eq!(to_canonical(&Bottomless), Err(Error::TooDeep));
}

#[test]
fn the_message_of_a_value_that_refuses_is_kept() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("out of order"))
        }
    }
    assert_eq!(to_canonical(&Refuses), Err(Error::Serialize("out of order".into())));
}
