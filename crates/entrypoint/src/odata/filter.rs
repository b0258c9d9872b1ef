//! `$filter`: comparisons of a field with a value, lists of values, and `and`, `or`, `not`, from the loosest to the tightest:
//! or, and, not.

use servo_model::Timestamp;

use super::lex::{Placed, Token, lex};
use super::{Field, FieldKind, QueryError, Resource};

pub const FILTER_BYTES_MAX: usize = 4 * 1024;
/// Comparisons in one filter.
pub const TERMS_MAX: usize = 50;
/// Values in one list.
pub const IN_MAX: usize = 100;
/// Parentheses and `not` inside each other.
pub const DEPTH_MAX: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Compare::Eq,
            "ne" => Compare::Ne,
            "lt" => Compare::Lt,
            "le" => Compare::Le,
            "gt" => Compare::Gt,
            "ge" => Compare::Ge,
            _ => return None,
        })
    }

    fn is_order(self) -> bool {
        !matches!(self, Compare::Eq | Compare::Ne)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    Text(String),
    Time(Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    Compare {
        field: &'static Field,
        compare: Compare,
        value: Literal,
    },
    /// Any of these; never empty.
    In {
        field: &'static Field,
        values: Vec<Literal>,
    },
    /// At least two.
    And(Vec<Filter>),
    /// At least two.
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

impl Filter {
    pub fn parse(text: &str, resource: &Resource) -> Result<Self, QueryError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(QueryError::new(FILTER_BYTES_MAX, format!("a filter has at most {FILTER_BYTES_MAX} bytes")));
        }
        let mut parser = Parser { tokens: lex(text)?, next: 0, end: text.len(), resource, terms: 0 };
        let filter = parser.or(0)?;
        match parser.take() {
            (_, None) => Ok(filter),
            (at, Some(_)) => {
                Err(QueryError::new(at, "the filter ends here; join further conditions with `and` or `or`"))
            }
        }
    }

    /// Whether the condition names this value of a field as one that it wants.
    pub fn asks_for(&self, name: &str, value: &str) -> bool {
        self.asks(name, value, true)
    }

    fn asks(&self, name: &str, value: &str, wanted: bool) -> bool {
        let is = |literal: &Literal| matches!(literal, Literal::Text(text) if text == value);
        match self {
            Filter::Compare { field, compare, value } if field.name == name => {
                let named = if wanted { Compare::Eq } else { Compare::Ne };
                *compare == named && is(value)
            }
            Filter::In { field, values } if field.name == name => wanted && values.iter().any(is),
            Filter::Compare { .. } | Filter::In { .. } => false,
            Filter::And(parts) | Filter::Or(parts) => parts.iter().any(|part| part.asks(name, value, wanted)),
            Filter::Not(inner) => inner.asks(name, value, !wanted),
        }
    }
}

struct Parser<'a> {
    tokens: Vec<Placed<'a>>,
    next: usize,
    end: usize,
    resource: &'a Resource,
    terms: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn take(&mut self) -> (usize, Option<Token<'a>>) {
        match self.tokens.get(self.next) {
            Some((at, token)) => {
                self.next += 1;
                (*at, Some(token.clone()))
            }
            None => (self.end, None),
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(found)) if *found == word);
        self.next += usize::from(found);
        found
    }

    fn or(&mut self, depth: usize) -> Result<Filter, QueryError> {
        let mut parts = vec![self.and(depth)?];
        while self.take_word("or") {
            parts.push(self.and(depth)?);
        }
        Ok(join(parts, Filter::Or))
    }

    fn and(&mut self, depth: usize) -> Result<Filter, QueryError> {
        let mut parts = vec![self.unary(depth)?];
        while self.take_word("and") {
            parts.push(self.unary(depth)?);
        }
        Ok(join(parts, Filter::And))
    }

    fn unary(&mut self, depth: usize) -> Result<Filter, QueryError> {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        if depth > DEPTH_MAX {
            return Err(QueryError::new(at, format!("a filter is at most {DEPTH_MAX} levels deep")));
        }
        if self.take_word("not") {
            return Ok(Filter::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.peek() == Some(&Token::Open) {
            self.next += 1;
            let inner = self.or(depth + 1)?;
            self.expect(&Token::Close, "`)`")?;
            return Ok(inner);
        }
        self.term()
    }

    fn term(&mut self) -> Result<Filter, QueryError> {
        let resource = self.resource;
        let (at, field) = match self.take() {
            (at, Some(Token::Word(name))) => (at, (name, resource.field(name))),
            (at, _) => {
                return Err(QueryError::new(at, format!("a field is missing; these exist: {}", resource.names(false))));
            }
        };
        let (name, Some(field)) = field else {
            return Err(QueryError::new(at, format!("no field `{}`; these exist: {}", field.0, resource.names(false))));
        };
        self.terms += 1;
        if self.terms > TERMS_MAX {
            return Err(QueryError::new(at, format!("a filter has at most {TERMS_MAX} comparisons")));
        }
        let (at, operator) = match self.take() {
            (at, Some(Token::Word(word))) => (at, word),
            (at, _) => return Err(QueryError::new(at, format!("after `{name}` comes eq, ne, lt, le, gt, ge or in"))),
        };
        if operator == "in" {
            return Ok(Filter::In { field, values: self.list(field)? });
        }
        let Some(compare) = Compare::parse(operator) else {
            return Err(QueryError::new(
                at,
                format!("no operator `{operator}`; these exist: eq, ne, lt, le, gt, ge, in"),
            ));
        };
        if compare.is_order() && !field.kind.is_ordered() {
            return Err(QueryError::new(at, format!("`{name}` has no order; use eq, ne or in")));
        }
        Ok(Filter::Compare { field, compare, value: self.literal(field)? })
    }

    fn list(&mut self, field: &Field) -> Result<Vec<Literal>, QueryError> {
        self.expect(&Token::Open, "`(`")?;
        let mut values = vec![self.literal(field)?];
        while self.peek() == Some(&Token::Comma) {
            let (at, _) = self.take();
            if values.len() == IN_MAX {
                return Err(QueryError::new(at, format!("a list has at most {IN_MAX} values")));
            }
            values.push(self.literal(field)?);
        }
        self.expect(&Token::Close, "`,` or `)`")?;
        Ok(values)
    }

    fn literal(&mut self, field: &Field) -> Result<Literal, QueryError> {
        let (at, token) = self.take();
        match (field.kind, token) {
            (FieldKind::Time, Some(Token::Word(text))) => Timestamp::parse(text)
                .map(Literal::Time)
                .map_err(|error| QueryError::new(at, format!("`{text}` is {}", error.reason))),
            (FieldKind::Time, _) => {
                Err(QueryError::new(at, format!("`{}` takes a bare time such as 2026-01-01T00:00:00.000Z", field.name)))
            }
            (FieldKind::Word(words), Some(Token::Text(text))) if !words.contains(&text.as_str()) => {
                Err(QueryError::new(at, format!("`{}` is one of: {}", field.name, words.join(", "))))
            }
            (FieldKind::Word(_) | FieldKind::Text | FieldKind::Name, Some(Token::Text(text))) => {
                Ok(Literal::Text(text))
            }
            (FieldKind::Word(_) | FieldKind::Text | FieldKind::Name, _) => {
                Err(QueryError::new(at, format!("`{}` takes a text in single quotes", field.name)))
            }
        }
    }

    fn expect(&mut self, token: &Token<'_>, name: &str) -> Result<(), QueryError> {
        match self.take() {
            (_, Some(found)) if found == *token => Ok(()),
            (at, _) => Err(QueryError::new(at, format!("{name} is missing"))),
        }
    }
}

fn join(mut parts: Vec<Filter>, make: fn(Vec<Filter>) -> Filter) -> Filter {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            make(parts)
        }
        None => make(parts),
    }
}
