//! `$orderby`: fields with a direction each, and the resource's id behind them, so that no two rows are equal.

use super::lex::{Token, lex};
use super::{Field, QueryError, Resource};

pub const ORDER_KEYS_MAX: usize = 4;
const ORDER_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Asc,
    Desc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    pub field: &'static Field,
    pub direction: Direction,
}

/// At least one key; the last one is unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy(Vec<OrderKey>);

impl OrderBy {
    /// Newest first.
    pub fn newest(resource: &Resource) -> Self {
        let keys = resource.field("created_at").map(|field| OrderKey { field, direction: Direction::Desc });
        Self(keys.into_iter().collect()).with_id(resource)
    }

    pub fn parse(text: &str, resource: &Resource) -> Result<Self, QueryError> {
        if text.len() > ORDER_BYTES_MAX {
            return Err(QueryError::new(ORDER_BYTES_MAX, format!("an order has at most {ORDER_BYTES_MAX} bytes")));
        }
        let tokens = lex(text)?;
        let mut keys: Vec<OrderKey> = Vec::new();
        for part in tokens.split(|(_, token)| *token == Token::Comma) {
            let (at, name, direction) = match part {
                [(at, Token::Word(name))] | [(at, Token::Word(name)), (_, Token::Word("asc"))] => {
                    (*at, *name, Direction::Asc)
                }
                [(at, Token::Word(name)), (_, Token::Word("desc"))] => (*at, *name, Direction::Desc),
                [] => return Err(QueryError::new(text.len(), "a field is missing in the order")),
                [(at, _), ..] => {
                    return Err(QueryError::new(*at, "an order is fields with `asc` or `desc`, joined by commas"));
                }
            };
            let Some(field) = resource.field(name).filter(|field| field.sortable) else {
                let known = resource.names(true);
                return Err(QueryError::new(at, format!("no order by `{name}`; these exist: {known}")));
            };
            if keys.iter().any(|key| key.field.name == name) {
                return Err(QueryError::new(at, format!("`{name}` stands in the order twice")));
            }
            if keys.len() == ORDER_KEYS_MAX {
                return Err(QueryError::new(at, format!("an order has at most {ORDER_KEYS_MAX} fields")));
            }
            keys.push(OrderKey { field, direction });
        }
        Ok(Self(keys).with_id(resource))
    }

    /// The id goes in the direction of the key before it, so that one index serves both.
    fn with_id(mut self, resource: &Resource) -> Self {
        let direction = self.0.last().map_or(Direction::Asc, |key| key.direction);
        if let Some(field) = resource.field(resource.id)
            && !self.0.iter().any(|key| key.field.name == resource.id)
        {
            self.0.push(OrderKey { field, direction });
        }
        self
    }

    pub fn keys(&self) -> &[OrderKey] {
        &self.0
    }
}
