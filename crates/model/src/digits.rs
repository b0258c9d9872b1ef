//! Whole numbers that would lose digits. JSON has no limit on them, but what reads JSON here keeps 64 bits and makes a fraction of
//! the rest: 2^64 + 1 would arrive as 2^64. Such a number is refused, with its place, rather than changed in silence.

/// What whoever sent one is told.
pub const ADVICE: &str = "this number has more than 64 bits and would lose digits; send it as a text";

/// Every number of fewer digits fits.
const DIGITS_MIN: usize = 19;

/// The place of the first whole number that fits neither `i64` nor `u64`, as a JSON pointer without its first slash. The text is
/// JSON.
pub fn first_too_large(json: &str) -> Option<String> {
    if !has_long_run(json.as_bytes()) {
        return None;
    }
    let bytes = json.as_bytes();
    let mut inside: Vec<Place<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                if let Some(Place::Member { name, is_next }) = inside.last_mut()
                    && *is_next
                {
                    (*name, *is_next) = (&json[start..at], false);
                }
            }
            b'{' => inside.push(Place::Member { name: "", is_next: true }),
            b'[' => inside.push(Place::Item(0)),
            b'}' | b']' => drop(inside.pop()),
            b',' => match inside.last_mut() {
                Some(Place::Member { is_next, .. }) => *is_next = true,
                Some(Place::Item(index)) => *index += 1,
                None => {}
            },
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[at..].iter().take_while(is_part).count();
                if is_too_large(&json[start..at]) {
                    return Some(inside.iter().map(Place::name).collect::<Vec<_>>().join("/"));
                }
            }
            _ => {}
        }
    }
    None
}

enum Place<'a> {
    /// Of an object: the name as it is written, with its quotes.
    Member {
        name: &'a str,
        /// The next text is a name.
        is_next: bool,
    },
    Item(usize),
}

impl Place<'_> {
    fn name(&self) -> String {
        match self {
            Self::Member { name, .. } => serde_json::from_str(name).unwrap_or_else(|_| (*name).to_owned()),
            Self::Item(index) => index.to_string(),
        }
    }
}

/// Nearly every body ends here, after one look at each byte.
fn has_long_run(json: &[u8]) -> bool {
    let mut run = 0;
    json.iter().any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        run >= DIGITS_MIN
    })
}

/// Behind the closing quote.
fn end_of_string(json: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    json.len()
}

/// A fraction or an exponent says that it need not be exact.
fn is_too_large(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_64_bits_pass_and_larger_ones_are_found() {
        for fits in ["0", "9223372036854775808", "18446744073709551615", "-9223372036854775808", "-0"] {
            assert_eq!(first_too_large(&format!("{{\"a\": [{fits}]}}")), None, "{fits}");
        }
        for large in ["18446744073709551616", "18446744073709551617", "-9223372036854775809", &"9".repeat(400)] {
            assert_eq!(first_too_large(&format!("{{\"a\": [1, {large}]}}")).as_deref(), Some("a/1"), "{large}");
        }
    }

    #[test]
    fn what_is_no_whole_number_is_left_alone() {
        let long = "1".repeat(30);
        for text in [
            format!("{{\"text\": \"{long}\"}}"),
            format!("{{\"{long}\": 1}}"),
            format!("{{\"escaped\": \"\\\"{long}\"}}"),
            format!("[{long}.5, 0.{long}, {long}e3, 1E20]"),
        ] {
            assert_eq!(first_too_large(&text), None, "{text}");
        }
    }

    #[test]
    fn the_place_is_named_wherever_it_is() {
        let large = "18446744073709551616";
        for (text, place) in [
            (format!("{{\"a\": {{\"b\\\"\\u0041\": [[], {{}}, {{\"c\": 1, \"d\": {large}}}]}}}}"), "a/b\"A/2/d"),
            (format!("{{\"a\": \"x\", \"b\": {large}}}"), "b"),
            (format!("[[1,2],[3,{large}]]"), "1/1"),
            (large.to_owned(), ""),
        ] {
            assert_eq!(first_too_large(&text).as_deref(), Some(place), "{text}");
        }
    }
}
