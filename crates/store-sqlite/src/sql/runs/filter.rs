//! A caller's filter in SQL, by the rules of `RunFilter`. Columns are ours, values are always parameters.

use rusqlite::types::Value;
use servo_store::runs::{CompareOp, RunFilter, RunValue};

/// The condition, and the values of its parameters `:f0`, `:f1` and so on.
#[derive(Debug, Default)]
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<(String, Value)>,
}

impl Condition {
    pub(super) fn of(filter: &RunFilter) -> Self {
        let mut condition = Self::default();
        condition.add(filter);
        condition
    }

    fn add(&mut self, filter: &RunFilter) {
        match filter {
            RunFilter::And(parts) => self.join(parts, " AND ", "1", Self::add),
            RunFilter::Or(parts) => self.join(parts, " OR ", "0", Self::add),
            RunFilter::Not(part) => {
                self.sql.push_str("NOT ");
                self.join(std::slice::from_ref(&**part), "", "1", Self::add);
            }
            RunFilter::Compare { field, op, value } => self.compare(field.column(), *op, value),
            RunFilter::In { field, values } => {
                self.join(values, " OR ", "0", |own, value| own.compare(field.column(), CompareOp::Eq, value));
            }
        }
    }

    /// In parentheses; `empty` stands for no parts.
    fn join<T>(&mut self, parts: &[T], between: &str, empty: &str, add: impl Fn(&mut Self, &T)) {
        self.sql.push('(');
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.sql.push_str(between);
            }
            add(self, part);
        }
        if parts.is_empty() {
            self.sql.push_str(empty);
        }
        self.sql.push(')');
    }

    fn compare(&mut self, column: &str, op: CompareOp, value: &RunValue) {
        let name = format!(":f{}", self.values.len());
        let sql = match op {
            CompareOp::Eq => format!("{column} IS {name}"),
            CompareOp::Ne => format!("{column} IS NOT {name}"),
            CompareOp::Lt => format!("coalesce({column} < {name}, 0)"),
            CompareOp::Le => format!("coalesce({column} <= {name}, 0)"),
            CompareOp::Gt => format!("coalesce({column} > {name}, 0)"),
            CompareOp::Ge => format!("coalesce({column} >= {name}, 0)"),
        };
        self.sql.push_str(&sql);
        let value = match value {
            RunValue::Text(text) => Value::Text(text.clone()),
            RunValue::Time(at) => Value::Integer(at.as_millis()),
            RunValue::Null => Value::Null,
        };
        self.values.push((name, value));
    }
}
