//! The one spelling of a number. It takes digits as they come from the standard library's formatting and decides which
//! of two equally short texts to take and where the point and the exponent go; it does no arithmetic of its own.

use std::fmt::{LowerExp, Write as _};
use std::str::FromStr;

use crate::Error;

/// An integer token of a JSON text, copied digit by digit whatever its size, so a large integer is never rounded.
///
/// Beyond the range of a double it is refused: ordinary readers fail on such a number or see infinity, and a payload
/// that is accepted here must be readable later.
pub(crate) fn write_integer_token(out: &mut String, token: &str) -> Result<(), Error> {
    // A double holds every integer of up to 308 digits, if not exactly; only longer ones need the real test.
    if token.len() > 308 && token.parse::<f64>().is_ok_and(f64::is_infinite) {
        return Err(Error::NumberOutOfRange);
    }
    out.push_str(if token == "-0" { "0" } else { token });
    Ok(())
}

/// A number token with a fraction or an exponent: read as a double, as every ordinary JSON reader does.
pub(crate) fn write_float_token(out: &mut String, token: &str) -> Result<(), Error> {
    let value: f64 = token.parse().expect("the grammar of json numbers is part of that of floats");
    // The token is finite by its grammar, so an infinity means that it does not fit.
    if value.is_infinite() {
        return Err(Error::NumberOutOfRange);
    }
    write_float(out, value)
}

/// A float in the shortest digits that read back to the same value.
///
/// The layout is Python's (`repr` and so `json.dumps`): positional from 1e-4 up to but excluding 1e16, else with an
/// exponent that has a sign and at least two digits (`1e+16`, `1.5e-07`); but without the `.0` that Python leaves on
/// whole numbers, because 1.0 and 1 are the same number to JSON. For the same reason -0.0 is `0`: it equals 0, and
/// `-0` would be read back as the integer 0 by many readers, so equal data would have two spellings.
///
/// An `f32` keeps its own shortest digits (0.1, not 0.10000000149011612), which is what goes over the wire as JSON.
pub(crate) fn write_float<F: LowerExp + FromStr + PartialEq + Into<f64> + Copy>(
    out: &mut String,
    value: F,
) -> Result<(), Error> {
    let wide: f64 = value.into();
    if !wide.is_finite() {
        return Err(Error::NotFinite);
    }
    if wide == 0.0 {
        out.push('0');
        return Ok(());
    }
    let scientific = shortest(value);
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` always prints an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` prints a decimal exponent");
    let mantissa = match mantissa.strip_prefix('-') {
        Some(rest) => {
            out.push('-');
            rest
        }
        None => mantissa,
    };
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    match exponent {
        0..16 => write_large(out, first, rest, exponent.unsigned_abs() as usize),
        -4..0 => {
            out.push_str("0.");
            push_zeros(out, exponent.unsigned_abs() as usize - 1);
            out.push_str(first);
            out.push_str(rest);
        }
        _ => {
            out.push_str(first);
            if !rest.is_empty() {
                out.push('.');
                out.push_str(rest);
            }
            write!(out, "e{exponent:+03}").expect("writing to a string cannot fail");
        }
    }
    Ok(())
}

/// `[-]d[.ddd]e[-]x` with the fewest digits that read back and, of those texts, the one nearest to the value; of two
/// equally near ones the one with an even last digit.
///
/// `{:e}` does all of that except the last: it rounds a tie up. 1125899906842624.25 lies in the middle between the
/// texts that end in .2 and .3, both of which read back; Python and others print the even one, so digests would differ.
fn shortest<F: LowerExp + FromStr + PartialEq + Copy>(value: F) -> String {
    let upward = format!("{value:e}");
    let (mantissa, _) = upward.split_once('e').expect("`{:e}` always prints an exponent");
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    // Different texts of up to 6 digits (f32; 15 for f64) never read back as the same float, so they cannot tie.
    if digits <= 6 || mantissa.ends_with(['0', '2', '4', '6', '8']) {
        return upward;
    }
    // With a given number of digits the value is rounded exactly, and a tie to even. Below a power of two the doubles
    // are closer together, so the nearest text may belong to a neighbour; then there was no tie and `upward` is right.
    let nearest = format!("{value:.*e}", digits - 1);
    if nearest.parse().is_ok_and(|back: F| back == value) { nearest } else { upward }
}

/// `first.rest` with the point moved `shift` places to the right.
fn write_large(out: &mut String, first: &str, rest: &str, shift: usize) {
    out.push_str(first);
    match rest.split_at_checked(shift) {
        Some((whole, "")) => out.push_str(whole),
        Some((whole, fraction)) => {
            out.push_str(whole);
            out.push('.');
            out.push_str(fraction);
        }
        None => {
            out.push_str(rest);
            push_zeros(out, shift - rest.len());
        }
    }
}

fn push_zeros(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n('0', count));
}
