//! Runs that start runs: how deep they go, and how many are open below one root. What is too much is refused to the program as
//! the failure of its invoke, which is recorded as any other and so the same in every replay.
//!
//! Whoever calls the API from a program begins a root of their own: that call comes from outside, with credentials and limits.

use std::collections::BTreeMap;

use servo_entrypoint::errors;
use servo_machine::Spawn;
use servo_model::RunState;
use servo_model::event::Lineage;
use servo_model::execution::Operation;
use servo_model::invocation::{ErrorCategory, Failure};
use servo_model::operation::{ErrorObject, OperationType, OperationUpdate};
use servo_store::Scope;

use super::seal::Token;
use super::{Executions, Refused};
use crate::engine::Places;

/// Where what a run starts would stand.
#[derive(Debug)]
pub(super) struct Below {
    lineage: Lineage,
    levels_max: u32,
    open_max: u32,
    /// Nothing has begun there: a root starts the first ones itself, one checkpoint after the other.
    is_empty: bool,
}

impl Below {
    /// Why nothing may begin there, if that is so.
    pub(super) fn refuses(&self, target: &str) -> Option<ErrorObject> {
        let is_too_deep = self.lineage.level > self.levels_max;
        is_too_deep.then(|| {
            in_words_of(target.starts_with("gts."), "RecursiveInvocationException", &too_deep(self.levels_max))
        })
    }
}

pub(crate) fn too_deep(levels_max: u32) -> Failure {
    let message = format!(
        "runs start runs at most {levels_max} levels deep, and this one would be a level deeper; does a program start itself?"
    );
    Failure::new(errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit, message)
}

fn too_many(root: &str, open_max: u32) -> Failure {
    let message = format!(
        "at most {open_max} runs that the run `{root}` and those below it have started may be open, and so many are; wait for some \
         of them to end before starting more"
    );
    Failure::new(errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit, message)
}

/// Of an entrypoint in its own words, of a function in those of the service.
fn in_words_of(is_entrypoint: bool, name: &str, failure: &Failure) -> ErrorObject {
    if is_entrypoint { failure.to_error() } else { ErrorObject::new(name, failure.message.clone()) }
}

/// A run that is tried again has forgotten what it had started.
fn has_started_nothing(state: &RunState) -> bool {
    let started = |operation: &Operation| operation.operation_type == OperationType::ChainedInvoke;
    let has_started = state.execution.as_ref().is_none_or(|execution| execution.operations().iter().any(started));
    state.root().is_none() && state.round == 1 && !has_started
}

impl Executions {
    pub(super) async fn below(&self, token: &Token) -> Result<Below, Refused> {
        let lineage =
            |state: &RunState| (Lineage::of_child(&state.run_id, state.lineage()), has_started_nothing(state));
        let (lineage, is_empty) = self.engine.view(&Scope::Tenant(token.tenant.clone()), &token.run, lineage).await?;
        let (levels_max, open_max) = self.engine.config().families.of(&token.tenant);
        let is_endless = self.engine.config().is_sabotaged("endless-families");
        let (levels_max, open_max) = if is_endless { (u32::MAX, u32::MAX) } else { (levels_max, open_max) };
        Ok(Below { lineage, levels_max, open_max, is_empty })
    }

    /// Says of what is about to begin where it stands, and lets in as many as may be open. The places are given back with what
    /// is returned, unless that is said to be recorded.
    pub(super) async fn bound(
        &self,
        token: &Token,
        below: Below,
        updates: &[OperationUpdate],
        targets: &mut BTreeMap<String, Result<Spawn, ErrorObject>>,
    ) -> Result<Option<Places>, Refused> {
        let wanted = targets.values().filter(|target| target.is_ok()).count() as u64;
        if wanted == 0 {
            return Ok(None);
        }
        let Below { lineage, open_max, is_empty, .. } = below;
        let known = is_empty.then_some(0);
        let entered = self.engine.enter_family(&token.tenant, &lineage.root, (wanted, open_max), known).await;
        let places = entered.map_err(crate::engine::Error::from)?;
        let mut left = places.count();
        // In the order in which the program asked.
        for update in updates {
            let Some(target) = targets.get_mut(&update.id) else { continue };
            let Ok(spawn) = target else { continue };
            if let Some(less) = left.checked_sub(1) {
                left = less;
                spawn.start.belong_to(lineage.clone());
            } else {
                let is_entrypoint = spawn.start.start.entrypoint.is_some();
                let failure = too_many(lineage.root.as_str(), open_max);
                *target = Err(in_words_of(is_entrypoint, "TooManyRequestsException", &failure));
            }
        }
        Ok(Some(places))
    }
}
