//! What a case asks of the log records of an execution.

use regex::Regex;
use serde_json::Value;

use crate::CaseError;

/// A record as the handler's logger got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    pub execution_arn: String,
    pub level: String,
    pub message: String,
}

impl LogRecord {
    fn field(&self, name: &str) -> Option<&str> {
        match name {
            "message" => Some(&self.message),
            "level" => Some(&self.level),
            "executionArn" | "durableExecutionArn" => Some(&self.execution_arn),
            _ => None,
        }
    }
}

/// How many records with these fields there may be.
#[derive(Debug, Clone)]
pub struct LogRule {
    fields: Vec<(String, Regex)>,
    min: u64,
    max: u64,
}

impl LogRule {
    pub(crate) fn parse(value: &Value) -> Result<Self, CaseError> {
        let mut rule = Self { fields: Vec::new(), min: 0, max: u64::MAX };
        for (key, value) in value.as_object().ok_or_else(|| CaseError::new("a log rule is no mapping"))? {
            let number = || value.as_u64().ok_or_else(|| CaseError::new(format!("{key} is no count")));
            match key.as_str() {
                "match" => {
                    let fields = value.as_object().ok_or_else(|| CaseError::new("match is no mapping"))?;
                    rule.fields = fields.iter().map(|(name, value)| field(name, value)).collect::<Result<_, _>>()?;
                }
                "count" => (rule.min, rule.max) = (number()?, number()?),
                "min_count" => rule.min = number()?,
                "max_count" => rule.max = number()?,
                // Silence would pass a case that asks for more than is checked.
                other => return Err(CaseError::new(format!("log rules with `{other}` are not supported"))),
            }
        }
        Ok(rule)
    }

    pub fn problem(&self, records: &[LogRecord]) -> Option<String> {
        let meets = |record: &&LogRecord| {
            self.fields.iter().all(|(name, regex)| record.field(name).is_some_and(|text| regex.is_match(text)))
        };
        let count = records.iter().filter(meets).count() as u64;
        let wanted = self.min..=self.max;
        (!wanted.contains(&count)).then(|| {
            let fields: Vec<_> = self.fields.iter().map(|(name, regex)| format!("{name} ~ {regex}")).collect();
            format!("{count} log records with {}, wanted {} to {}", fields.join(", "), self.min, self.max)
        })
    }
}

/// `/re/` is searched for, anything else is compared.
fn field(name: &str, value: &Value) -> Result<(String, Regex), CaseError> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pattern = match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
        Some(pattern) => pattern.to_owned(),
        None => format!("^{}$", regex::escape(&text)),
    };
    let regex = Regex::new(&pattern).map_err(|error| CaseError::new(error.to_string()))?;
    Ok((name.to_owned(), regex))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(message: &str) -> LogRecord {
        LogRecord { execution_arn: "a".to_owned(), level: "INFO".to_owned(), message: message.to_owned() }
    }

    #[test]
    fn counts_are_exact_or_bounds() {
        let records = [record("one"), record("one more"), record("two")];
        let problem = |rule: Value| LogRule::parse(&rule).unwrap().problem(&records);
        assert_eq!(problem(json!({"match": {"message": "/one/"}, "count": 2})), None);
        assert!(problem(json!({"match": {"message": "/one/"}, "count": 1})).is_some());
        assert_eq!(problem(json!({"match": {"message": "one"}, "count": 1})), None);
        assert!(problem(json!({"match": {"message": "/one/"}, "min_count": 3})).is_some());
        assert!(problem(json!({"match": {"message": "/o/"}, "max_count": 2})).is_some());
        assert!(problem(json!({"match": {"colour": "/o/"}, "min_count": 1})).is_some());
    }

    #[test]
    fn an_unknown_rule_is_refused() {
        assert!(LogRule::parse(&json!({"match": {}, "before": "x"})).is_err());
    }
}
