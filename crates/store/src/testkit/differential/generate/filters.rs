//! Conditions and orders of lists of runs.

use servo_model::invocation::{InvocationMode, InvocationStatus};

use super::World;
use crate::runs::{CompareOp, RunField, RunFilter, RunOrder, RunValue};

impl World<'_> {
    pub(super) fn mode(&mut self) -> Option<InvocationMode> {
        self.rng.pick(&[None, Some(InvocationMode::Sync), Some(InvocationMode::Async)])
    }

    pub(super) fn correlation_id(&mut self) -> Option<String> {
        self.rng.pick(&[None, Some("trace-1"), Some("Trace-2")]).map(str::to_owned)
    }

    pub(super) fn order(&mut self) -> RunOrder {
        let has_after = self.rng.one_in(2);
        match self.rng.below(4) {
            0 => RunOrder::Created { after: if has_after { Some(self.near()) } else { None } },
            1 => {
                let status = self.rng.pick(&InvocationStatus::ALL);
                RunOrder::Visible { after: if has_after { Some(status) } else { None } }
            }
            _ => RunOrder::RunId,
        }
    }

    /// A condition at most so deep.
    pub(super) fn filter(&mut self, depth: u64) -> RunFilter {
        let kind = if depth == 0 { 3 + self.rng.below(3) } else { self.rng.below(6) };
        let parts = |world: &mut Self| (0..world.rng.below(3)).map(|_| world.filter(depth - 1)).collect();
        match kind {
            0 => RunFilter::And(parts(self)),
            1 => RunFilter::Or(parts(self)),
            2 => RunFilter::Not(Box::new(self.filter(depth - 1))),
            3 => {
                let field = self.rng.pick(&RunField::ALL);
                RunFilter::In { field, values: (0..self.rng.below(4)).map(|_| self.value(field)).collect() }
            }
            _ => {
                let field = self.rng.pick(&RunField::ALL);
                RunFilter::Compare { field, op: self.rng.pick(&CompareOp::ALL), value: self.value(field) }
            }
        }
    }

    fn value(&mut self, field: RunField) -> RunValue {
        if self.rng.one_in(5) {
            return RunValue::Null;
        }
        let text = match field {
            RunField::CreatedAt | RunField::FinishedAt => return RunValue::Time(self.near()),
            RunField::RunId => self.any_run().1.as_str().to_owned(),
            RunField::PlanId => format!("plan-{}", self.rng.below(3)),
            RunField::Visible => self.rng.pick(&InvocationStatus::ALL).as_str().to_owned(),
            RunField::Mode => self.rng.pick(&["sync", "async"]).to_owned(),
            RunField::CorrelationId => self.rng.pick(&["trace-1", "Trace-2"]).to_owned(),
        };
        RunValue::Text(text)
    }
}
