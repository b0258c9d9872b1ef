//! A condition on runs, put together by a caller from comparisons.
//!
//! It has two truth values: an absent value equals only `Null`, differs from every other, and is neither less nor
//! greater than anything. Databases are given the same rule in their own words.

use servo_model::Timestamp;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::limits::{JSON_DEPTH_MAX, RUN_FILTER_TERMS_MAX};

use super::RunRow;
use crate::entrypoints::check_texts;
use crate::error::{Error, Result};

/// What can be asked about. Words compare as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunField {
    RunId,
    PlanId,
    Visible,
    Mode,
    CorrelationId,
    CreatedAt,
    FinishedAt,
}

impl RunField {
    pub const ALL: [RunField; 7] = [
        RunField::RunId,
        RunField::PlanId,
        RunField::Visible,
        RunField::Mode,
        RunField::CorrelationId,
        RunField::CreatedAt,
        RunField::FinishedAt,
    ];

    /// As the column of the `runs` row is called.
    pub fn column(self) -> &'static str {
        match self {
            RunField::RunId => "run_id",
            RunField::PlanId => "plan_id",
            RunField::Visible => "visible",
            RunField::Mode => "mode",
            RunField::CorrelationId => "correlation_id",
            RunField::CreatedAt => "created_at",
            RunField::FinishedAt => "finished_at",
        }
    }

    pub fn is_time(self) -> bool {
        matches!(self, RunField::CreatedAt | RunField::FinishedAt)
    }

    fn of(self, row: &RunRow) -> RunValue {
        let text = |text: &str| RunValue::Text(text.to_owned());
        match self {
            RunField::RunId => text(row.run_id.as_str()),
            RunField::PlanId => text(&row.plan_id),
            RunField::Visible => text(InvocationStatus::as_str(row.visible)),
            RunField::Mode => row.mode.map_or(RunValue::Null, |mode| text(InvocationMode::as_str(mode))),
            RunField::CorrelationId => row.correlation_id.as_deref().map_or(RunValue::Null, text),
            RunField::CreatedAt => RunValue::Time(row.created_at),
            RunField::FinishedAt => row.finished_at.map_or(RunValue::Null, RunValue::Time),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd)]
pub enum RunValue {
    Text(String),
    Time(Timestamp),
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    fn holds(self, has: &RunValue, asked: &RunValue) -> bool {
        let both = *has != RunValue::Null && *asked != RunValue::Null;
        match self {
            CompareOp::Eq => has == asked,
            CompareOp::Ne => has != asked,
            CompareOp::Lt => both && has < asked,
            CompareOp::Le => both && has <= asked,
            CompareOp::Gt => both && has > asked,
            CompareOp::Ge => both && has >= asked,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFilter {
    /// Of nothing: true.
    And(Vec<RunFilter>),
    /// Of nothing: false.
    Or(Vec<RunFilter>),
    Not(Box<RunFilter>),
    Compare {
        field: RunField,
        op: CompareOp,
        value: RunValue,
    },
    /// Equal to one of these.
    In {
        field: RunField,
        values: Vec<RunValue>,
    },
}

impl RunFilter {
    pub fn matches(&self, row: &RunRow) -> bool {
        match self {
            RunFilter::And(all) => all.iter().all(|filter| filter.matches(row)),
            RunFilter::Or(any) => any.iter().any(|filter| filter.matches(row)),
            RunFilter::Not(filter) => !filter.matches(row),
            RunFilter::Compare { field, op, value } => op.holds(&field.of(row), value),
            RunFilter::In { field, values } => values.contains(&field.of(row)),
        }
    }

    /// What must hold before a filter is asked: not too deep, not too long, and values of the fields' kinds.
    pub fn check(&self) -> Result<()> {
        let mut terms = 0;
        self.check_part(0, &mut terms)
    }

    fn check_part(&self, depth: usize, terms: &mut usize) -> Result<()> {
        *terms += 1;
        if depth > JSON_DEPTH_MAX {
            return Err(Error::Limit { what: "the depth of a filter", limit: JSON_DEPTH_MAX as u64 });
        }
        let mut check_value = |field: &RunField, value: &RunValue| {
            *terms += 1;
            check_kind(*field, value)
        };
        match self {
            RunFilter::And(parts) | RunFilter::Or(parts) => {
                parts.iter().try_for_each(|part| part.check_part(depth + 1, terms))?;
            }
            RunFilter::Not(part) => part.check_part(depth + 1, terms)?,
            RunFilter::Compare { field, value, .. } => check_value(field, value)?,
            RunFilter::In { field, values } => values.iter().try_for_each(|value| check_value(field, value))?,
        }
        if *terms > RUN_FILTER_TERMS_MAX {
            return Err(Error::Limit { what: "the terms of a filter", limit: RUN_FILTER_TERMS_MAX as u64 });
        }
        Ok(())
    }
}

fn check_kind(field: RunField, value: &RunValue) -> Result<()> {
    match value {
        RunValue::Null => Ok(()),
        RunValue::Text(text) if !field.is_time() => check_texts("filter", [text.as_str()].into_iter()),
        RunValue::Time(_) if field.is_time() => Ok(()),
        RunValue::Text(_) | RunValue::Time(_) => {
            let kind = if field.is_time() { "times" } else { "texts" };
            let reason = format!("{} is compared with {kind} only", field.column());
            Err(Error::Invalid { field: "filter".to_owned(), reason })
        }
    }
}
