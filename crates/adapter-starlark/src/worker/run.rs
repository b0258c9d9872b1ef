//! One call of a loaded source.

use std::cell::RefCell;
use std::rc::Rc;

use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::operation::{ErrorObject, OperationType};
use servo_replay::Operation;
use servo_wire::lambda::{self, Millis};
use starlark::environment::{FrozenModule, Module};
use starlark::eval::Evaluator;

use super::ctx::Ctx;
use super::json::{self, WriteError};
use super::link::Link;
use super::raised::{Raised, caught, limit};
use super::session::{Session, read_page};
use crate::protocol::{CallHead, Outcome, ToChild};

/// Calls inside calls. The stack of the child has room for many more.
pub(crate) const CALL_DEPTH_MAX: usize = 500;

pub(crate) fn run(
    module: &FrozenModule,
    link: &Rc<RefCell<Link>>,
    head: CallHead,
    payload: &[u8],
) -> (Outcome, String) {
    match evaluate(module, link, head, payload) {
        Ok(text) => (Outcome::Returned, text),
        Err(Raised::Fail(error) | Raised::Fatal(error)) => (Outcome::Failed { error }, String::new()),
        Err(Raised::Suspend | Raised::Withdrawn) => (Outcome::Suspended, String::new()),
    }
}

fn evaluate(module: &FrozenModule, link: &Rc<RefCell<Link>>, head: CallHead, payload: &[u8]) -> Result<String, Raised> {
    let payload = std::str::from_utf8(payload).map_err(|_| invalid("the input is no UTF-8"))?;
    let output_bytes_max = head.output_bytes_max;
    let (input, operations) = if head.durable {
        let operations = load_operations(payload, head.more, link)?;
        let execution = operations.iter().find(|operation| operation.operation_type == OperationType::Execution);
        let details = execution.and_then(|operation| operation.execution_details.as_ref());
        let input = details.and_then(|details| details.input_payload.clone());
        (input.unwrap_or_else(|| "null".to_owned()), Some(operations))
    } else {
        (payload.to_owned(), None)
    };
    let (mut head, mut operations) = (head, operations);
    loop {
        let session = Session::new(link.clone(), head, operations);
        let written = walk(module, &session, &input, output_bytes_max);
        if !matches!(written, Err(Raised::Suspend)) || !session.has_come() {
            return written;
        }
        (head, operations) = session.into_parts();
    }
}

/// Walks through the program once, as far as it comes.
fn walk(module: &FrozenModule, session: &Session, input: &str, output_bytes_max: usize) -> Result<String, Raised> {
    let scratch = Module::new();
    let mut eval = Evaluator::new(&scratch);
    drop(eval.set_max_callstack_size(CALL_DEPTH_MAX));
    eval.extra = Some(session);
    let heap = scratch.heap();
    let input = if input.is_empty() { "null" } else { input };
    let input = json::read(input, heap).map_err(|message| invalid(&message))?;
    let main = module.get("main").map_err(|_| invalid("there is no function main"))?;
    let main = main.owned_value(scratch.frozen_heap());
    let ctx = heap.alloc(Ctx);
    let outcome = eval.eval_function(main, &[ctx, input], &[]);
    let written = outcome.map_err(|error| caught(session, &error)).and_then(|value| {
        json::write(value, output_bytes_max).map_err(|error| match error {
            WriteError::Kind(message) => invalid(&format!("what main returns has no JSON: {message}")),
            WriteError::TooLarge => {
                let failure = limit("output_bytes", output_bytes_max as u64, "what main returns is too large");
                Raised::Fail(failure.to_error())
            }
        })
    });
    if matches!(written, Err(Raised::Fatal(_) | Raised::Withdrawn)) {
        return written;
    }
    // Where the author says what is recorded, an end says nothing; a suspension needs what led to it.
    if !session.is_automatic() && !matches!(written, Err(Raised::Suspend)) {
        return written;
    }
    // What is still in line is recorded, whatever the outcome: a suspension above all.
    match session.flush() {
        Ok(()) => written,
        Err(error) => Err(caught(session, &error)),
    }
}

/// The recorded state. The first page spells times as the envelope does, further ones as the API does.
fn load_operations(first: &str, more: bool, link: &Rc<RefCell<Link>>) -> Result<Vec<Operation>, Raised> {
    let first: Vec<lambda::Operation<Millis>> =
        serde_json::from_str(first).map_err(|error| invalid(&format!("the state cannot be read: {error}")))?;
    let mut operations: Vec<Operation> = first.into_iter().map(lambda::Operation::with_time).collect();
    let mut more = more;
    while more {
        let (head, body) = link.borrow_mut().receive();
        match head {
            ToChild::Page { more: further } => {
                operations.extend(read_page(&body));
                more = further;
            }
            other => super::broken(&format!("expected a page, got {other:?}")),
        }
    }
    Ok(operations)
}

fn invalid(message: &str) -> Raised {
    let error: ErrorObject = Failure::new(errors::EXECUTION, ErrorCategory::NonRetryable, message).to_error();
    Raised::Fail(error)
}
