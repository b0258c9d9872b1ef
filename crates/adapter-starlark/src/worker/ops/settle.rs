//! Outcomes as values, for programs that go on after a failure (`catch = True`).

use servo_model::invocation::{Failure, errors};
use servo_model::operation::ErrorObject;
use starlark::eval::Evaluator;
use starlark::values::dict::AllocDict;
use starlark::values::{Heap, Value};

use crate::worker::json;
use crate::worker::object::Object;
use crate::worker::raised::{CALL_TRACE, Raised, caught, raise};
use crate::worker::session::Session;

pub(crate) fn succeeded<'v>(value: Value<'v>, heap: &'v Heap) -> Value<'v> {
    object([("ok", Value::new_bool(true)), ("value", value), ("error", Value::new_none())], heap)
}

pub(crate) fn failed<'v>(error: &ErrorObject, heap: &'v Heap) -> Value<'v> {
    let mut failure = Failure::of(error);
    // For people, and no business of the program: it would depend on every line of the source.
    failure.details.remove(CALL_TRACE);
    // Programs see the type that a program has made up; errors from elsewhere have the id that stands for them.
    let is_made_up = failure.error_type_id == errors::EXECUTION && Failure::of_ours(error).is_some();
    let made_up = failure.user_type().filter(|_| is_made_up);
    let error_type = made_up.unwrap_or(&failure.error_type_id).to_owned();
    let details = serde_json::to_string(&failure.details).unwrap_or_default();
    let details = json::read(&details, heap).unwrap_or_else(|_| Value::new_none());
    let error = object(
        [
            ("type", heap.alloc(error_type.as_str())),
            ("message", heap.alloc(failure.message.as_str())),
            ("category", heap.alloc(failure.category.as_str())),
            ("details", details),
        ],
        heap,
    );
    object([("ok", Value::new_bool(false)), ("value", Value::new_none()), ("error", error)], heap)
}

fn object<'v, const N: usize>(fields: [(&str, Value<'v>); N], heap: &'v Heap) -> Value<'v> {
    let dict = heap.alloc(AllocDict(fields));
    heap.alloc(Object::new(dict))
}

/// The outcome as it is, or as a value if the program wants to see failures.
pub(crate) fn settle<'v>(
    eval: &Evaluator<'v, '_, '_>,
    outcome: starlark::Result<Value<'v>>,
    catch: bool,
) -> starlark::Result<Value<'v>> {
    let session = Session::of(eval)?;
    match outcome {
        Ok(value) if catch => Ok(succeeded(value, eval.heap())),
        Err(error) if catch && session.has_raised() => match caught(session, &error) {
            Raised::Fail(object) => Ok(failed(&object, eval.heap())),
            other => Err(raise(session, other)),
        },
        outcome => outcome,
    }
}
