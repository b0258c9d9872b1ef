//! Map and parallel: branches, each in a context of its own. They run one after the other, but one that waits gives way
//! to the next, so that their waits overlap.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_model::operation::{ErrorObject, OperationType};
use servo_replay::{Completion, CompletionConfig, CompletionReason, Progress, SubType, operation_id};
use starlark::eval::Evaluator;
use starlark::values::Value;

use super::{context, settle};
use crate::worker::op::{Op, read_result, write_payload};
use crate::worker::raised::{Raised, caught, raise, wrong};
use crate::worker::session::Session;

pub(crate) const BRANCHES_MAX: usize = 10_000;

/// The recorded form, the same as in the SDKs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Batch {
    all: Vec<Item>,
    completion_reason: CompletionReason,
}

#[derive(Serialize, Deserialize)]
struct Item {
    index: usize,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Status {
    Succeeded,
    Failed,
}

pub(crate) struct Group<'v> {
    pub(crate) kind: SubType,
    pub(crate) name: Option<String>,
    /// A function and what it is called with.
    pub(crate) branches: Vec<(Value<'v>, Vec<Value<'v>>)>,
    /// Branches under way at the same time, which here means: waiting.
    pub(crate) max_concurrency: Option<usize>,
    /// Failures are part of the result. Otherwise the first one fails the whole.
    pub(crate) catch: bool,
}

pub(crate) fn run<'v>(eval: &mut Evaluator<'v, '_, '_>, group: &Group<'v>) -> starlark::Result<Value<'v>> {
    let session = Session::of(eval)?;
    if group.branches.len() > BRANCHES_MAX {
        return Err(wrong(format!("{} branches are too many; at most {BRANCHES_MAX}", group.branches.len())));
    }
    if group.max_concurrency == Some(0) {
        return Err(wrong("max_concurrency is 0; give at least 1, or leave it out for no limit"));
    }
    let op = Op::next(session, (OperationType::Context, group.kind), group.name.as_deref())?;
    let text = context::run(eval, &op, |eval| run_all(eval, group, &op.id))?;
    let batch: Batch = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("the recorded outcome of the branches cannot be read: {error}")))?;
    let heap = eval.heap();
    let values = batch.all.into_iter().map(|item| {
        let value = read_result(item.result.as_deref().map(RawValue::get), heap);
        match (group.catch, item.error) {
            (false, _) => value,
            (true, None) => settle::succeeded(value, heap),
            (true, Some(error)) => settle::failed(&error, heap),
        }
    });
    let values: Vec<Value<'v>> = values.collect();
    Ok(heap.alloc(values))
}

fn run_all<'v>(eval: &mut Evaluator<'v, '_, '_>, group: &Group<'v>, id: &str) -> starlark::Result<String> {
    let session = Session::of(eval)?;
    let rule = if group.catch { CompletionConfig::all_completed() } else { CompletionConfig::all_successful() };
    let mut progress = Progress { total: group.branches.len(), succeeded: 0, failed: 0 };
    let mut completion = rule.decide(progress);
    let mut waiting = 0;
    let mut items = Vec::with_capacity(group.branches.len());
    for index in 0..group.branches.len() {
        if completion != Completion::Continue || group.max_concurrency.is_some_and(|most| waiting >= most) {
            break;
        }
        match run_branch(eval, group, id, index) {
            Ok(result) => {
                progress.succeeded += 1;
                items.push(Item { index, status: Status::Succeeded, result: Some(raw(result)?), error: None });
            }
            Err(error) => match caught(session, &error) {
                Raised::Suspend => waiting += 1,
                Raised::Fail(error) => {
                    progress.failed += 1;
                    items.push(Item { index, status: Status::Failed, result: None, error: Some(error) });
                }
                other => return Err(raise(session, other)),
            },
        }
        completion = rule.decide(progress);
    }
    match completion {
        Completion::Continue => Err(raise(session, Raised::Suspend)),
        Completion::Done(CompletionReason::FailureToleranceExceeded) => {
            let first = items.into_iter().find_map(|item| item.error).unwrap_or_default();
            Err(raise(session, Raised::Fail(first)))
        }
        Completion::Done(completion_reason) => {
            let batch = Batch { all: items, completion_reason };
            serde_json::to_string(&batch).map_err(|error| wrong(error.to_string()))
        }
    }
}

fn raw(text: String) -> starlark::Result<Box<RawValue>> {
    RawValue::from_string(text).map_err(|error| wrong(format!("a recorded result is no JSON: {error}")))
}

fn run_branch<'v>(
    eval: &mut Evaluator<'v, '_, '_>,
    group: &Group<'v>,
    parent: &str,
    index: usize,
) -> starlark::Result<String> {
    let session = Session::of(eval)?;
    let (sub_type, name) = match group.kind {
        SubType::Map => (SubType::MapIteration, format!("map-item-{index}")),
        _ => (SubType::ParallelBranch, format!("parallel-branch-{index}")),
    };
    let id = operation_id(Some(parent), index as u64 + 1);
    let op = Op::at(session, id, (OperationType::Context, sub_type), Some(&name));
    let Some((function, arguments)) = group.branches.get(index) else { return Ok("null".to_owned()) };
    context::run(eval, &op, |eval| {
        let value = eval.eval_function(*function, arguments, &[])?;
        write_payload(session, "the result of a branch", value)
    })
}
