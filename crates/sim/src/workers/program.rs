//! What handlers do: steps, steps that fail once, waits, and executions of their own, one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use servo_adapter::HandlerFailure;
use servo_runtime::Clock as _;
use servo_wire::lambda::{
    ChainedInvokeOptions, CheckpointRequest, ErrorObject, Operation, OperationAction as A, OperationStatus as S,
    OperationType as T, OperationUpdate, StepOptions, WaitOptions,
};

use super::{DEADLY, Invocation, Workers};
use crate::dice::Dice;

/// The function that all of them are.
pub(crate) const FUNCTION: &str = "program";

/// A name, and a letter for each operation: `s`tep, `f`laky step, `w`ait, `i`nvoke.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) ops: String,
}

impl Program {
    pub(crate) fn random(number: u64, dice: &mut Dice) -> Self {
        let count = dice.between(1, 6);
        let ops = (0..count).map(|_| *dice.pick(&['s', 's', 's', 'f', 'w', 'w', 'i'])).collect();
        Self { name: format!("p{number}"), ops }
    }

    pub(crate) fn input(&self) -> String {
        json!({"name": self.name, "ops": self.ops}).to_string()
    }

    pub(crate) fn read(input: &str) -> Option<Self> {
        let input: Value = serde_json::from_str(input).ok()?;
        Some(Self { name: input["name"].as_str()?.to_owned(), ops: input["ops"].as_str()?.to_owned() })
    }
}

/// What is known of an operation.
#[derive(Debug, Clone)]
struct Known {
    status: S,
    attempt: u32,
    result: Option<String>,
}

type Journal = BTreeMap<String, Known>;

/// Where an operation has led.
#[derive(Debug, Clone, Copy)]
enum Step {
    Value(u64),
    Waits,
}

const PENDING: &str = r#"{"Status":"PENDING"}"#;

pub(super) async fn run(workers: &Workers, invocation: &Invocation) -> Result<String, HandlerFailure> {
    let broken = |what: &str| HandlerFailure::crashed("Runtime.UnmarshalError", what.to_owned());
    let operations = &invocation.input.initial_execution_state.operations;
    let input = operations.iter().find_map(|operation| operation.execution_details.as_ref()?.input_payload.clone());
    let program = input.as_deref().and_then(Program::read).ok_or_else(|| broken("no program"))?;
    let mut journal = Journal::new();
    merge(&mut journal, operations);
    let mut token = Some(invocation.input.checkpoint_token.clone());
    let mut values = Vec::new();
    for (number, op) in program.ops.chars().enumerate() {
        if workers.state().dice.below(DEADLY) == 0 {
            workers.state().counts.deaths += 1;
            return Err(HandlerFailure::crashed("Runtime.ExitError", "the worker died"));
        }
        let updates = match next(workers, &program, number, op, &journal).await {
            Ok(step) => match finished(workers, &program, number, step, &mut values) {
                true => continue,
                false => return Ok(PENDING.to_owned()),
            },
            Err(updates) => updates,
        };
        let Some(checkpoint_token) = token.take() else { return Ok(PENDING.to_owned()) };
        let client_token = Some(format!("{}-{number}", &invocation.request_id[..invocation.request_id.len().min(36)]));
        let request = CheckpointRequest { checkpoint_token, updates: Some(updates), client_token };
        let answer = workers.checkpoint(invocation, request).await?;
        token = answer.checkpoint_token;
        merge(&mut journal, &answer.new_execution_state.operations);
        match next(workers, &program, number, op, &journal).await {
            Ok(step) if finished(workers, &program, number, step, &mut values) => {}
            _ => return Ok(PENDING.to_owned()),
        }
    }
    Ok(json!({"Status": "SUCCEEDED", "Result": json!(values).to_string()}).to_string())
}

/// Whether the handler goes on.
fn finished(workers: &Workers, program: &Program, number: usize, step: Step, values: &mut Vec<u64>) -> bool {
    let Step::Value(value) = step else { return false };
    workers.tell(&program.name, number, value);
    values.push(value);
    true
}

fn merge<T>(journal: &mut Journal, operations: &[Operation<T>]) {
    for operation in operations {
        let attempt = operation.step_details.as_ref().map_or(0, |details| details.attempt);
        let result = operation.outcome().0.map(str::to_owned);
        journal.insert(operation.id.clone(), Known { status: operation.status, attempt, result });
    }
}

/// How far the operation is by the record, or what is to be recorded next.
async fn next(
    workers: &Workers,
    program: &Program,
    number: usize,
    op: char,
    journal: &Journal,
) -> Result<Step, Vec<OperationUpdate>> {
    let id = format!("o{number}");
    let known = journal.get(&id);
    match (op, known.map(|known| known.status)) {
        (_, Some(S::Succeeded)) => {
            let result = known.and_then(|known| known.result.as_deref()).unwrap_or("0");
            if op == 'w' {
                ended_in_time(workers, program, number);
            }
            let value = serde_json::from_str(result).ok();
            // Another execution answers with the list of its values.
            let nested = || serde_json::from_str::<Vec<u64>>(result).ok().and_then(|values| values.first().copied());
            Ok(Step::Value(value.or_else(nested).unwrap_or(0)))
        }
        ('s' | 'f', None | Some(S::Ready)) => {
            // Some take longer than a lease, so that their node is replaced meanwhile.
            let most = if workers.state().dice.percent(10) { 9_000 } else { 400 };
            let body = workers.state().dice.below(most);
            workers.clock.sleep(Duration::from_millis(body)).await;
            let start = OperationUpdate::new(&id, T::Step, A::Start);
            let fails = op == 'f' && known.is_none_or(|known| known.attempt == 0);
            let mut end = OperationUpdate::new(&id, T::Step, if fails { A::Retry } else { A::Succeed });
            if fails {
                end.error = Some(ErrorObject::new("Flaky", "not yet"));
                end.step_options = Some(StepOptions::after_seconds(2));
            } else {
                let mut state = workers.state();
                state.values += 1;
                end.payload = Some(state.values.to_string());
            }
            Err(vec![start, end])
        }
        ('w', None) => {
            let sent = workers.clock.now();
            let mut state = workers.state();
            state.counts.waits += 1;
            // The first to ask counts: a replaced invocation may ask again, in vain.
            state.waits.entry((program.name.clone(), number)).or_insert(sent);
            let mut start = OperationUpdate::new(&id, T::Wait, A::Start);
            start.wait_options = Some(WaitOptions { wait_seconds: Some(WAIT_SECONDS) });
            Err(vec![start])
        }
        ('i', None) => {
            let inner = Program { name: format!("{}/{number}", program.name), ops: "s".to_owned() };
            let mut start = OperationUpdate::new(&id, T::ChainedInvoke, A::Start);
            start.payload = Some(inner.input());
            let function_name = FUNCTION.to_owned();
            start.chained_invoke_options =
                Some(ChainedInvokeOptions { function_name, ..ChainedInvokeOptions::default() });
            Err(vec![start])
        }
        // Another execution was stopped, or its workers died too often.
        ('i', Some(status)) if status.is_terminal() => Ok(Step::Value(0)),
        _ => Ok(Step::Waits),
    }
}

const WAIT_SECONDS: u64 = 3;

/// By the true clock: the wait cannot have begun before it was asked for.
fn ended_in_time(workers: &Workers, program: &Program, number: usize) {
    let now = workers.clock.now();
    let mut state = workers.state();
    let Some(sent) = state.waits.get(&(program.name.clone(), number)).copied() else { return };
    if now < sent.plus(Duration::from_secs(WAIT_SECONDS)) {
        state.findings.push(format!(
            "{}: wait {number} of {WAIT_SECONDS} s began after {sent} and is over at {now}",
            program.name
        ));
    }
}
