//! Canonical JSON and SHA-256: equal data gives equal bytes and so equal digests, in every language that follows the
//! rules below. Fingerprints, idempotency keys and signatures are made from these bytes; this crate knows none of
//! them, holds no domain type and keeps no tree of values. The vectors in `spec/vectors` are the contract with other
//! languages.
//!
//! # The form
//!
//! - No white space, no byte order mark, UTF-8.
//! - Keys ascend by their UTF-8 bytes, which is the order of code points. (The order by UTF-16 units, which some
//!   languages use, differs: it puts U+1F600 before U+FFFD.) A key that occurs twice is an error.
//! - Strings keep every character as it is, except the quote, the backslash and U+0000 to U+001F. No normalisation:
//!   texts that merely look alike are different data.
//! - Integers are copied exactly, whatever their size. `-0` is `0`.
//! - A number with a fraction or an exponent is read as a double and written in the shortest digits that read back to
//!   it: positional from 1e-4 up to but excluding 1e16, else with a signed exponent of at least two digits. So `1.0`
//!   is `1`, `1.50` is `1.5`, `1e2` is `100`, `-0.0` is `0`, `1E21` is `1e+21` and `0.00001` is `1e-05`.
//! - NaN and the infinities are errors, and so is any number whose magnitude a double cannot hold.
//! - Arrays and objects nest less than [`DEPTH_LIMIT`] levels.
//!
//! The reference in Python is `json.dumps(value, sort_keys=True, separators=(',', ':'), ensure_ascii=False,
//! allow_nan=False)` after every whole float below 1e16 in magnitude has become an `int`. From 1e16 on the two kinds of
//! number stay apart, there as here: the double `1e+16` and the integer `10000000000000000` are different data.
//!
//! ```
//! # fn main() -> Result<(), servo_canon::Error> {
//! let canonical = servo_canon::canonicalize(r#"{ "tenant": "acme", "date": "2025-01-15" }"#)?;
//! assert_eq!(canonical, r#"{"date":"2025-01-15","tenant":"acme"}"#);
//! # Ok(())
//! # }
//! ```

mod digest;
mod error;
mod number;
mod parse;
mod serialize;
mod writer;

pub use digest::{Digest, fingerprint};
pub use error::Error;
pub use parse::canonicalize;
pub use serialize::to_canonical;
pub use writer::DEPTH_LIMIT;
