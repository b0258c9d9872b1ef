//! The spelling of numbers. Expected texts of floats are what Python prints, less a trailing `.0`.

use proptest::prelude::*;
use servo_canon::{Error, canonicalize, to_canonical};

#[test]
fn floats_in_texts_are_spelt_like_in_the_reference() {
    for (input, expected) in [
        ("1.0", "1"),
        ("1.50", "1.5"),
        ("-1.0", "-1"),
        ("100.0", "100"),
        ("1e2", "100"),
        ("1E2", "100"),
        ("1.25e+1", "12.5"),
        ("12.5e-1", "1.25"),
        ("123.456", "123.456"),
        ("0.1", "0.1"),
        ("-0.5", "-0.5"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("0.0001", "0.0001"),
        ("0.00012345", "0.00012345"),
        ("0.00001", "1e-05"),
        ("-0.000012345", "-1.2345e-05"),
        ("1e-10", "1e-10"),
        ("1.5e-7", "1.5e-07"),
        ("1e15", "1000000000000000"),
        ("9007199254740993.0", "9007199254740992"),
        ("9999999999999998.0", "9999999999999998"),
        ("1e16", "1e+16"),
        ("12345678901234567890.0", "1.2345678901234567e+19"),
        ("1e21", "1e+21"),
        ("1E21", "1e+21"),
        ("1e22", "1e+22"),
        ("1e23", "1e+23"),
        ("-1.5e300", "-1.5e+300"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("5e-324", "5e-324"),
        ("5.684341886080802e-14", "5.684341886080802e-14"),
        // A tie between two texts of the same length goes to the even digit.
        ("1125899906842624.25", "1125899906842624.2"),
        ("1125899906842624.75", "1125899906842624.8"),
        ("-1125899906842625.25", "-1125899906842625.2"),
        // No tie: the nearest text of 16 digits belongs to the neighbour below the power of two.
        ("618970019642690137449562112.0", "6.189700196426902e+26"),
        // Digits beyond a double are rounded as every reader rounds them, and too small a number is zero.
        ("0.1000000000000000055511151231257827", "0.1"),
        ("1e-400", "0"),
        ("0.0", "0"),
        ("0e5", "0"),
        ("-0.0", "0"),
        ("-0e-7", "0"),
    ] {
        assert_eq!(canonicalize(input).as_deref(), Ok(expected), "{input}");
    }
}

#[test]
fn integers_are_copied_exactly_whatever_their_size() {
    let wei = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let widest = "1".repeat(308);
    for integer in [
        "0",
        "7",
        "-42",
        "9007199254740993",
        "10000000000000000",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        wei,
        &widest,
        &format!("-{widest}"),
    ] {
        assert_eq!(canonicalize(integer).as_deref(), Ok(integer));
    }
    assert_eq!(canonicalize("-0").as_deref(), Ok("0"));
    assert_eq!(to_canonical(&i64::MIN).unwrap(), "-9223372036854775808");
    assert_eq!(to_canonical(&u64::MAX).unwrap(), "18446744073709551615");
    assert_eq!(to_canonical(&i128::MIN).unwrap(), "-170141183460469231731687303715884105728");
    assert_eq!(to_canonical(&u128::MAX).unwrap(), "340282366920938463463374607431768211455");
}

#[test]
fn numbers_beyond_a_double_are_refused_in_every_spelling() {
    let too_large = "9".repeat(309);
    for text in ["1e309", "-1e309", "1.8e308", "1e99999999999999999999", &too_large, &format!("-{too_large}")] {
        assert_eq!(canonicalize(text), Err(Error::NumberOutOfRange), "{text}");
    }
    // 309 digits, but a double can hold it.
    let fits = format!("17{}", "0".repeat(307));
    assert_eq!(canonicalize(&fits), Ok(fits));
}

#[test]
fn nan_and_infinities_are_refused() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(to_canonical(&value), Err(Error::NotFinite));
        assert_eq!(to_canonical(&[value]), Err(Error::NotFinite));
        assert_eq!(to_canonical(&(value as f32)), Err(Error::NotFinite));
    }
    for text in ["NaN", "Infinity", "-Infinity", "nan", "-inf"] {
        assert!(matches!(canonicalize(text), Err(Error::Syntax { .. })), "{text}");
    }
}

#[test]
fn floats_as_values() {
    assert_eq!(to_canonical(&1.0).unwrap(), "1");
    assert_eq!(to_canonical(&-0.0).unwrap(), "0");
    assert_eq!(to_canonical(&-0.0f32).unwrap(), "0");
    assert_eq!(to_canonical(&1e21).unwrap(), "1e+21");
    assert_eq!(to_canonical(&f64::MAX).unwrap(), "1.7976931348623157e+308");
    // An f32 has the digits that it has in ordinary JSON, not those of its widening.
    assert_eq!(to_canonical(&0.1f32).unwrap(), "0.1");
    assert_eq!(to_canonical(&16_777_216f32).unwrap(), "16777216");
    assert_eq!(to_canonical(&f32::MAX).unwrap(), "3.4028235e+38");
}

#[test]
fn powers_of_two_read_back() {
    // Just below a power of two the doubles are closer together than above it, so the nearest short text may belong to
    // the neighbour.
    for exponent in -1074..=1023 {
        let value = 2f64.powi(exponent);
        let text = to_canonical(&value).unwrap();
        assert_eq!(text.parse(), Ok(value), "2^{exponent}");
        let other = serde_json::to_string(&value).unwrap();
        assert_eq!(significant_digits(&text), significant_digits(&other), "2^{exponent}");
    }
}

/// Significant digits of the shortest decimal that reads back, found by trying every length.
fn shortest_len(value: f64) -> usize {
    let reads_back = |digits: &usize| format!("{value:.*e}", digits - 1).parse() == Ok(value);
    (1..=17).find(reads_back).expect("17 digits always read back")
}

fn significant_digits(text: &str) -> String {
    let (mantissa, _) = text.split_once('e').unwrap_or((text, ""));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_start_matches('0').trim_end_matches('0').to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_double_reads_back_and_no_shorter_text_would(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite() && value != 0.0);
        let text = to_canonical(&value).unwrap();
        prop_assert_eq!(text.parse::<f64>(), Ok(value));
        let digits = significant_digits(&text);
        // Unless no nearest text of this length reads back, the one chosen is the nearest, ties to even.
        let nearest = format!("{value:.*e}", digits.len() - 1);
        if nearest.parse() == Ok(value) {
            prop_assert_eq!(&digits, &significant_digits(&nearest));
        }
        prop_assert!(digits.len() <= shortest_len(value), "{}", text);
        prop_assert_eq!(canonicalize(&text), Ok(text.clone()));
        prop_assert_eq!(text.contains('e'), !(1e-4..1e16).contains(&value.abs()));
    }

    #[test]
    fn quarters_where_ties_are_common_agree_with_another_writer(quarters in (1u64 << 51)..(1 << 53)) {
        let value = quarters as f64 / 4.0;
        let other = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(to_canonical(&value).unwrap(), other.trim_end_matches(".0"));
    }

    #[test]
    fn any_f32_equals_its_ordinary_json(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        prop_assume!(value.is_finite());
        let wire = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(to_canonical(&value), canonicalize(&wire));
    }

    #[test]
    fn every_spelling_of_a_whole_number_is_one(value in -9_999_999_999_999i64..=9_999_999_999_999, zeros in 0usize..4) {
        let expected = Ok(value.to_string());
        prop_assert_eq!(&canonicalize(&format!("{value}.{}", "0".repeat(zeros + 1))), &expected);
        prop_assert_eq!(&canonicalize(&format!("{value}{}e-{zeros}", "0".repeat(zeros))), &expected);
        prop_assert_eq!(&to_canonical(&(value as f64)), &expected);
        prop_assert_eq!(&to_canonical(&value), &expected);
    }
}
