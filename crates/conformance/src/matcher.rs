//! Whether a value is what a case expects.
//!
//! | expected | means |
//! |---|---|
//! | `'*'` | anything, if it is there |
//! | `{}` | any object |
//! | `${NAME}` | anything at first, and the same wherever the name stands again |
//! | `${/re/}` | text or number in which the pattern is found |
//! | object | each of its fields matches; others are not looked at |
//! | list | as long, and each element matches |
//! | null | null or absent |

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::Value;

/// What the placeholders of a case stand for.
pub type Bindings = BTreeMap<String, Value>;

/// The first difference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mismatch {
    path: String,
    problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the value" } else { &self.path };
        write!(f, "{path}: {}", self.problem)
    }
}

impl Mismatch {
    fn new(path: &str, problem: String) -> Self {
        Self { path: path.to_owned(), problem }
    }
}

/// `actual` is none where a field is absent.
pub fn matches(expected: &Value, actual: Option<&Value>, bound: &mut Bindings) -> Result<(), Mismatch> {
    compare("", expected, actual, bound)
}

fn compare(path: &str, expected: &Value, actual: Option<&Value>, bound: &mut Bindings) -> Result<(), Mismatch> {
    if expected.is_null() {
        return match actual {
            None | Some(Value::Null) => Ok(()),
            Some(actual) => Err(Mismatch::new(path, format!("expected nothing, found {actual}"))),
        };
    }
    let Some(actual) = actual else {
        return Err(Mismatch::new(path, format!("expected {expected}, found nothing")));
    };
    let differs = || Mismatch::new(path, format!("expected {expected}, found {actual}"));
    match (expected, actual) {
        (Value::String(pattern), _) => text(path, pattern, actual, bound),
        (Value::Object(fields), Value::Object(found)) => fields
            .iter()
            .try_for_each(|(name, field)| compare(&format!("{path}/{name}"), field, found.get(name), bound)),
        (Value::Array(items), Value::Array(found)) => {
            if items.len() != found.len() {
                let problem = format!("expected {} elements, found {}", items.len(), found.len());
                return Err(Mismatch::new(path, problem));
            }
            let pairs = items.iter().zip(found).enumerate();
            pairs
                .into_iter()
                .try_for_each(|(index, (item, found))| compare(&format!("{path}/{index}"), item, Some(found), bound))
        }
        (Value::Number(number), Value::Number(found)) => {
            // A service may write 2 as 2.0.
            let same = number == found || number.as_f64().is_some() && number.as_f64() == found.as_f64();
            if same { Ok(()) } else { Err(differs()) }
        }
        _ if expected == actual => Ok(()),
        _ => Err(differs()),
    }
}

fn text(path: &str, pattern: &str, actual: &Value, bound: &mut Bindings) -> Result<(), Mismatch> {
    if pattern == "*" {
        return Ok(());
    }
    if let Some(name) = placeholder(pattern) {
        if let Some(regex) = name.strip_prefix('/').and_then(|name| name.strip_suffix('/')) {
            let regex = Regex::new(regex).map_err(|error| Mismatch::new(path, error.to_string()))?;
            let found = actual.as_str().map_or_else(|| actual.to_string(), str::to_owned);
            let problem = || Mismatch::new(path, format!("{found:?} does not match {regex}"));
            return if regex.is_match(&found) { Ok(()) } else { Err(problem()) };
        }
        let earlier = bound.entry(name.to_owned()).or_insert_with(|| actual.clone());
        let problem = || Mismatch::new(path, format!("{name} was {earlier} before, found {actual}"));
        return if earlier == actual { Ok(()) } else { Err(problem()) };
    }
    let filled = fill(path, pattern, bound)?;
    let problem = || Mismatch::new(path, format!("expected {filled:?}, found {actual}"));
    if actual.as_str() == Some(filled.as_str()) { Ok(()) } else { Err(problem()) }
}

/// The name, if the text is one placeholder and nothing else.
fn placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let pattern = name.starts_with('/') && name.ends_with('/');
    (pattern || !name.contains("${")).then_some(name)
}

/// Placeholders inside a text must be known by then.
fn fill(path: &str, pattern: &str, bound: &Bindings) -> Result<String, Mismatch> {
    let mut filled = pattern.to_owned();
    for (name, value) in bound {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        filled = filled.replace(&format!("${{{name}}}"), &text);
    }
    if filled.contains("${") {
        return Err(Mismatch::new(path, format!("{pattern:?} has a placeholder that nothing has set yet")));
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write the values in place")]
    fn check(expected: Value, actual: Value) -> bool {
        matches(&expected, Some(&actual), &mut Bindings::new()).is_ok()
    }

    #[test]
    fn wildcards_ask_for_presence() {
        assert!(check(json!({"a": "*"}), json!({"a": null})));
        assert!(!check(json!({"a": "*"}), json!({})));
        assert!(check(json!({}), json!({"a": 1})));
        assert!(!check(json!({}), json!("text")));
        assert!(check(json!({"a": null}), json!({})));
        assert!(!check(json!({"a": null}), json!({"a": 1})));
    }

    #[test]
    fn objects_are_subsets_and_lists_are_not() {
        assert!(check(json!({"a": {"b": 1}}), json!({"a": {"b": 1.0, "c": 2}, "d": 3})));
        assert!(!check(json!({"a": {"b": 1}}), json!({"a": {"b": 2}})));
        assert!(check(json!([1, "*"]), json!([1, 2])));
        assert!(!check(json!([1]), json!([1, 2])));
        assert!(!check(json!([2, 1]), json!([1, 2])));
    }

    #[test]
    fn a_placeholder_is_bound_once() {
        assert!(check(json!({"a": "${X}", "b": "${X}", "c": "\"${X}\""}), json!({"a": "v", "b": "v", "c": "\"v\""})));
        assert!(!check(json!({"a": "${X}", "b": "${X}"}), json!({"a": "v", "b": "w"})));
        assert!(check(json!({"a": "${X}", "b": "${Y}"}), json!({"a": "v", "b": "w"})));
        assert!(!check(json!({"a": "${X}"}), json!({})));
        assert!(!check(json!("x ${X}"), json!("x ${X}")));
    }

    #[test]
    fn patterns_are_searched_in_text_and_numbers() {
        assert!(check(json!("${/^[0-5]$/}"), json!(3)));
        assert!(!check(json!("${/^[0-5]$/}"), json!(6)));
        assert!(check(json!("${/.*TransientError$/}"), json!("my.TransientError")));
        assert!(!check(json!("${/.*TransientError$/}"), json!("TransientErrors")));
    }
}
