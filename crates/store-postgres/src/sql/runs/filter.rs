//! A caller's filter in SQL, by the rules of `RunFilter`. Columns are ours, values are always parameters.

use servo_store::runs::{CompareOp, RunFilter, RunValue};

use crate::pipeline::Param;

/// The condition on `runs r`; its parameters go behind those that are there.
pub(super) fn condition<'a>(filter: &'a RunFilter, params: &mut Vec<Param<'a>>) -> String {
    match filter {
        RunFilter::And(parts) => join(parts.iter().map(|part| condition(part, params)), " AND ", "true"),
        RunFilter::Or(parts) => join(parts.iter().map(|part| condition(part, params)), " OR ", "false"),
        RunFilter::Not(part) => format!("NOT ({})", condition(part, params)),
        RunFilter::Compare { field, op, value } => compare(field.column(), *op, value, field.is_time(), params),
        RunFilter::In { field, values } => {
            let equal = |value| compare(field.column(), CompareOp::Eq, value, field.is_time(), params);
            join(values.iter().map(equal), " OR ", "false")
        }
    }
}

fn join(parts: impl Iterator<Item = String>, between: &str, empty: &str) -> String {
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { empty.to_owned() } else { format!("({})", parts.join(between)) }
}

fn compare<'a>(column: &str, op: CompareOp, value: &'a RunValue, is_time: bool, params: &mut Vec<Param<'a>>) -> String {
    params.push(match value {
        RunValue::Text(text) => Box::new(text.as_str()),
        RunValue::Time(at) => Box::new(at.as_millis()),
        RunValue::Null if is_time => Box::new(None::<i64>),
        RunValue::Null => Box::new(None::<&str>),
    });
    let value = format!("${}::{}", params.len(), if is_time { "bigint" } else { "text" });
    match op {
        CompareOp::Eq => format!("r.{column} IS NOT DISTINCT FROM {value}"),
        CompareOp::Ne => format!("r.{column} IS DISTINCT FROM {value}"),
        CompareOp::Lt => format!("COALESCE(r.{column} < {value}, false)"),
        CompareOp::Le => format!("COALESCE(r.{column} <= {value}, false)"),
        CompareOp::Gt => format!("COALESCE(r.{column} > {value}, false)"),
        CompareOp::Ge => format!("COALESCE(r.{column} >= {value}, false)"),
    }
}
