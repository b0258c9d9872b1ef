//! The body of the fuzz target over a bounded number of random inputs, so that the ordinary test command runs it too.

use proptest::prelude::*;

use crate::check::check_canonical_json;

/// Pieces that random bytes would hardly ever put together.
const PIECES: [&str; 48] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    " ",
    "\n",
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"a\":",
    "\"b\":",
    "\"\\u0061\":",
    "\"\u{fffd}\":",
    "\"\u{1f600}\":",
    "\"\":",
    "\"\\n\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\\u",
    "0",
    "-0",
    "-",
    "1",
    "12",
    ".5",
    "1.0",
    "-0.0",
    "1e",
    "e5",
    "E+21",
    "e-7",
    "1e400",
    "18446744073709551616",
    "9007199254740993",
    "0.1",
    "\u{feff}",
    "\u{0}",
    "\u{10ffff}",
    "[[",
    "]]",
    "\"x\"",
    "\"A\":1",
];

/// Texts that are mostly JSON: values joined by the right marks, now and then by others.
fn nearly_json() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&PIECES[..]).prop_map(str::to_owned);
    leaf.prop_recursive(6, 40, 6, |inner| {
        let key = prop::sample::select(vec![
            "\"a\"",
            "\"b\"",
            "\"\\u0061\"",
            "\"\u{fffd}\"",
            "\"\u{1f600}\"",
            "\"\\n\"",
            "1",
        ]);
        let items = prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(" ,")));
        let entry = (key, inner).prop_map(|(key, value)| format!("{key}:{value}"));
        let object = prop::collection::vec(entry, 0..5).prop_map(|entries| format!("{{{}}}", entries.join(",")));
        prop_oneof![items, object]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_pass_the_check(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        check_canonical_json(&bytes);
    }

    #[test]
    fn random_pieces_pass_the_check(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
        check_canonical_json(pieces.concat().as_bytes());
    }

    #[test]
    fn random_texts_that_are_nearly_json_pass_the_check(text in nearly_json()) {
        check_canonical_json(text.as_bytes());
    }
}

#[test]
fn nesting_around_the_limit_passes_the_check() {
    for levels in 0..2 * servo_canon::DEPTH_LIMIT {
        for (open, close) in [("[", "]"), ("{\"b\":", "}"), ("{\"b\":", ",\"a\":0}"), ("[0,", "]")] {
            check_canonical_json(format!("{}1{}", open.repeat(levels), close.repeat(levels)).as_bytes());
        }
    }
}
