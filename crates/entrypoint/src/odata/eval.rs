//! What a filter and an order mean, on rows in memory. The stores that translate them are compared with this.

use std::cmp::Ordering;

use super::{Compare, Direction, Filter, Literal, OrderBy};

/// A row that can be asked for the fields of its resource.
pub trait Row {
    fn value(&self, field: &str) -> Literal;
}

fn compare(left: &Literal, right: &Literal) -> Ordering {
    match (left, right) {
        (Literal::Text(left), Literal::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Literal::Time(left), Literal::Time(right)) => left.cmp(right),
        // A field has one kind, so this is a row that answers wrongly; any order will do.
        (Literal::Text(_), Literal::Time(_)) => Ordering::Less,
        (Literal::Time(_), Literal::Text(_)) => Ordering::Greater,
    }
}

impl Filter {
    pub fn matches(&self, row: &impl Row) -> bool {
        match self {
            Filter::Compare { field, compare: operator, value } => {
                let order = compare(&row.value(field.name), value);
                match operator {
                    Compare::Eq => order.is_eq(),
                    Compare::Ne => order.is_ne(),
                    Compare::Lt => order.is_lt(),
                    Compare::Le => order.is_le(),
                    Compare::Gt => order.is_gt(),
                    Compare::Ge => order.is_ge(),
                }
            }
            Filter::In { field, values } => {
                let own = row.value(field.name);
                values.iter().any(|value| compare(&own, value).is_eq())
            }
            Filter::And(parts) => parts.iter().all(|part| part.matches(row)),
            Filter::Or(parts) => parts.iter().any(|part| part.matches(row)),
            Filter::Not(inner) => !inner.matches(row),
        }
    }
}

impl OrderBy {
    pub fn compare(&self, left: &impl Row, right: &impl Row) -> Ordering {
        let orders = self.keys().iter().map(|key| {
            let order = compare(&left.value(key.field.name), &right.value(key.field.name));
            if key.direction == Direction::Desc { order.reverse() } else { order }
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}
