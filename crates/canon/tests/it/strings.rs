//! Strings: only what JSON requires is escaped, and there is one way to escape it.

use servo_canon::{canonicalize, to_canonical};

#[test]
fn control_characters_have_one_escape_each() {
    for code in 0..0x20u8 {
        let char = char::from(code);
        let expected = match char {
            '\u{8}' => r#""\b""#.to_owned(),
            '\t' => r#""\t""#.to_owned(),
            '\n' => r#""\n""#.to_owned(),
            '\u{c}' => r#""\f""#.to_owned(),
            '\r' => r#""\r""#.to_owned(),
            _ => format!("\"\\u{code:04x}\""),
        };
        assert_eq!(to_canonical(&char).unwrap(), expected);
        assert_eq!(canonicalize(&format!("\"\\u{code:04X}\"")).unwrap(), expected);
    }
}

#[test]
fn nothing_else_is_escaped() {
    let text = "/ \u{7f} \u{80} é 中文 🎉 \u{2028} \u{2029} \u{feff} \u{ffff} \u{10ffff} <>&'";
    let expected = format!("\"{text}\"");
    assert_eq!(to_canonical(text).unwrap(), expected);
    assert_eq!(canonicalize(&expected).unwrap(), expected);
}

#[test]
fn needless_escapes_disappear() {
    for (input, expected) in [
        (r#""\/""#, "\"/\""),
        (r#""\u0041\u00e9\u4E2D""#, "\"Aé中\""),
        (r#""\ud83c\udf89\uD83C\uDF89""#, "\"🎉🎉\""),
        (r#""\ud800\udc00\udbff\udfff""#, "\"\u{10000}\u{10ffff}\""),
        (r#""\ud7ff\ue000""#, "\"\u{d7ff}\u{e000}\""),
        (r#""a\u0022b\u005cc""#, r#""a\"b\\c""#),
        (r#""x\u000ay""#, r#""x\ny""#),
        (r#""\u0000\u001f\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
    ] {
        assert_eq!(canonicalize(input).as_deref(), Ok(expected), "{input}");
    }
}

#[test]
fn keys_are_escaped_like_strings() {
    assert_eq!(canonicalize(r#"{"\u0022\/\u4e2d\u0001":1}"#).unwrap(), r#"{"\"/中\u0001":1}"#);
}
