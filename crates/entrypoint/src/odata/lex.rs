//! Words of a query. Offsets are in bytes, which for a valid query are characters up to its first quoted text.

use super::QueryError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A field, an operator or a bare value.
    Word(&'a str),
    /// Without its quotes, a doubled one inside made single.
    Text(String),
    Open,
    Close,
    Comma,
}

/// A token and where it starts.
pub(super) type Placed<'a> = (usize, Token<'a>);

pub(super) fn lex(text: &str) -> Result<Vec<Placed<'_>>, QueryError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' => at += 1,
            b'(' | b')' | b',' => {
                let token = match byte {
                    b'(' => Token::Open,
                    b')' => Token::Close,
                    _ => Token::Comma,
                };
                tokens.push((at, token));
                at += 1;
            }
            b'\'' => {
                let (value, end) = quoted(text, at)?;
                tokens.push((at, Token::Text(value)));
                at = end;
            }
            byte if is_word(*byte) => {
                let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                tokens.push((at, Token::Word(&text[at..at + length])));
                at += length;
            }
            _ => {
                let found = text[at..].chars().next().unwrap_or_default();
                return Err(QueryError::new(at, format!("`{found}` means nothing here; texts stand in single quotes")));
            }
        }
    }
    Ok(tokens)
}

/// Letters and digits, and what times are written with.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-' | b'+')
}

fn quoted(text: &str, start: usize) -> Result<(String, usize), QueryError> {
    let mut value = String::new();
    let mut rest = &text[start + 1..];
    loop {
        let Some((before, after)) = rest.split_once('\'') else {
            return Err(QueryError::new(start, "a text that starts with `'` has no end"));
        };
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None => return Ok((value, text.len() - after.len())),
        }
    }
}
