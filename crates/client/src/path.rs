//! Names in paths. ARNs and callback ids hold `:`, `/`, `$`, `+` and `=`, which must arrive as they are.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Everything but the characters that need no encoding anywhere (RFC 3986, unreserved).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One segment of a path, encoded when it is shown.
pub(crate) struct Segment<'a>(PercentEncode<'a>);

pub(crate) fn segment(text: &str) -> Segment<'_> {
    Segment(utf8_percent_encode(text, ENCODED))
}

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_or_a_query_would_read_otherwise_is_encoded() {
        assert_eq!(segment("a:b/c$d+e=f?g#h%i j").to_string(), "a%3Ab%2Fc%24d%2Be%3Df%3Fg%23h%25i%20j");
        assert_eq!(segment("inv_1-x.y~z").to_string(), "inv_1-x.y~z");
        assert_eq!(segment("ü").to_string(), "%C3%BC");
    }
}
