//! The keyword `uniqueItems`, by sorting. The library's own looks items up by a hash that does not see lists inside of lists: a few
//! megabytes of different brackets, all with one hash, would be compared each with each.

use std::cmp::Ordering;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

struct UniqueItems {
    is_wanted: bool,
}

impl UniqueItems {
    fn holds(&self, instance: &Value) -> bool {
        let Some(items) = instance.as_array().filter(|_| self.is_wanted) else { return true };
        let mut items: Vec<&Value> = items.iter().collect();
        items.sort_unstable_by(|left, right| compare(left, right));
        items.windows(2).all(|pair| compare(pair[0], pair[1]).is_ne())
    }
}

impl<'i> Keyword<'i> for UniqueItems {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match self.holds(instance) {
            true => Ok(()),
            false => Err(ValidationError::custom("the list has an item twice")),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.holds(instance)
    }
}

pub(super) fn factory<'a>(
    _parent: &'a Map<String, Value>,
    value: &'a Value,
    _path: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    match value.as_bool() {
        Some(is_wanted) => Ok(Box::new(UniqueItems { is_wanted })),
        None => Err(ValidationError::schema("`uniqueItems` is true or false")),
    }
}

/// An order of all values, in which those are equal that JSON Schema calls equal: numbers by what they are, objects whatever the order
/// of their members.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
            let pairs = left.iter().zip(right).map(|(left, right)| compare(left, right));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Value::Object(left), Value::Object(right)) => left.len().cmp(&right.len()).then_with(|| members(left, right)),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

fn members(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    // Names of maps may stand in the order in which they were sent.
    fn names(members: &Map<String, Value>) -> Vec<&str> {
        let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
    let (own, others) = (names(left), names(right));
    own.cmp(&others).then_with(|| {
        let mut orders = own.iter().filter_map(|name| Some(compare(left.get(*name)?, right.get(*name)?)));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// Whole numbers exactly; fractions, and whole numbers that are written as such, by what they are kept as.
fn numbers(left: &Number, right: &Number) -> Ordering {
    let whole = |number: &Number| number.as_i128().or_else(|| exact(number.as_f64()?));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
    }
}

/// The whole number that a fraction is, such as `1.0`.
#[expect(clippy::cast_possible_truncation, reason = "inside of the range, and whole")]
fn exact(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() < 1e38).then_some(number as i128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_json_schema_calls_equal_is_equal() {
        let unique = UniqueItems { is_wanted: true };
        for same in [
            json!([1, 1.0]),
            json!([0, -0.0]),
            json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]),
            json!([[], 1, []]),
            json!(["a", "b", "a"]),
            json!([null, false, null]),
            json!([1e300, 2, 1e300]),
            json!([u64::MAX, u64::MAX]),
        ] {
            assert!(!unique.holds(&same), "{same}");
            assert!(UniqueItems { is_wanted: false }.holds(&same), "{same}");
        }
        for different in [
            json!([1, "1", true, null, [1], {"1": 1}]),
            json!([u64::MAX, u64::MAX - 1, 18_446_744_073_709_551_615.0]),
            json!([[], [[]], [[], []], [[[]]]]),
            json!([{"a": 1}, {"b": 1}, {"a": 2}, {}]),
            json!([1, 1.5, 2, -1, 1e-300]),
            json!([]),
        ] {
            assert!(unique.holds(&different), "{different}");
        }
        assert!(unique.holds(&json!({"a": [1, 1]})) && unique.holds(&json!("aa")));
    }

    /// Lists of lists that a hash does not tell apart: each with each would be two thousand million comparisons.
    #[test]
    fn many_brackets_are_sorted() {
        let brackets = |number: usize| -> Value {
            (0..16).map(|bit| if number >> bit & 1 == 1 { json!([[]]) } else { json!([]) }).collect()
        };
        let unique = UniqueItems { is_wanted: true };
        let mut all: Vec<Value> = (0..1 << 16).map(brackets).collect();
        assert!(unique.holds(&Value::Array(all.clone())));
        all.push(brackets(7));
        assert!(!unique.holds(&Value::Array(all)));
    }
}
