//! Every command in every state, on one page.

use servo_machine::{Decision, Refusal};

use crate::check::given_world;
use crate::op::op;
use crate::text::kind;
use crate::world::World;

const STATES: [(&str, &str); 8] = [
    ("absent", ""),
    ("pending", "new queue"),
    ("approved", "new approval; approve"),
    ("running", "new; start a"),
    ("paused", "new; start a; pause"),
    ("completed", "new; start a; ok a; start b; ok b"),
    ("failed", "new; start a; fail a"),
    ("cancelled", "new; start a; cancel"),
];

/// `ok` is accepted, a name is the refusal; with `*` the refusal is recorded as a fact.
const TABLE: &str = "
              absent   pending            approved    running     paused      completed failed  cancelled
new           ok       Exists             Exists      Exists      Exists      Exists    Exists  Exists
begin         NoRun    ok                 ok          RunState    RunState    Closed    Closed  Closed
start_a       NoRun    NotRunning         NotRunning  StepState   NotRunning  Closed    Closed  Closed
start_b       NoRun    NotRunning         NotRunning  NotReady    NotRunning  Closed    Closed  Closed
take_a        NoRun    StepState          StepState   ok          ok          Closed    Closed  Closed
ok_a          NoRun    StepState          StepState   ok          ok          Closed    Closed  Closed
fail_a        NoRun    StepState          StepState   ok          ok          Closed    Closed  Closed
ok_a#2        NoRun    Superseded         Superseded  Superseded  Superseded  Closed    Closed  Closed
pause         NoRun    RunState*          RunState*   ok          RunState*   Closed    Closed  Closed
resume        NoRun    RunState*          RunState*   RunState*   ok          Closed    Closed  Closed
cancel        NoRun    ok                 ok          ok          ok          Closed    Closed  Closed
approve       NoRun    NoApprovalNeeded*  RunState*   RunState*   RunState*   Closed    Closed  Closed
retry-run     NoRun    RunState*          RunState*   RunState*   RunState*   Closed    ok      Closed
retry_a       NoRun    NotFailed*         NotFailed*  NotFailed*  NotFailed*  Closed    ok      Closed
skip_b        NoRun    ok                 ok          ok          ok          Closed    Closed  Closed
pause_denied  NoRun    Denied*            Denied*     Denied*     Denied*     Closed    Closed  Closed
tick          NoRun    ok                 ok          ok          ok          ok        ok      ok
terminate     NoRun    ok                 ok          ok          ok          Closed    Closed  Closed
";

fn put(world: &mut World, command: &str) -> Result<Decision, Refusal> {
    let command = world.command(&op(&command.replace('_', " "))).expect("a command");
    world.decide(&command)
}

/// ES-020, ES-021: what is not `ok` here is refused and changes no status; unless it is a rejected signal, it records
/// nothing.
#[test]
fn every_command_in_every_state() {
    let mut lines = TABLE.lines().filter(|line| !line.is_empty());
    let heads: Vec<&str> = lines.next().expect("a head").split_whitespace().collect();
    assert_eq!(heads, STATES.map(|(name, _)| name));
    for line in lines {
        let mut words = line.split_whitespace();
        let command = words.next().expect("a command");
        for ((state, given), wanted) in STATES.into_iter().zip(words) {
            let mut world = given_world("a b<a", given);
            let outcome = put(&mut world, command);
            let found = match &outcome {
                Err(refusal) => kind(refusal).to_owned(),
                Ok(decision) => {
                    decision.refusal.as_ref().map_or("ok".to_owned(), |refusal| format!("{}*", kind(refusal)))
                }
            };
            assert_eq!(found, wanted, "`{command}` when {state}");
            let Ok(decision) = outcome else { continue };
            if decision.refusal.is_none() {
                continue;
            }
            let before = world.summary();
            let types: Vec<&str> = decision.facts.iter().map(|fact| fact.body.event_type()).collect();
            assert_eq!(types, ["SignalRejected"], "`{command}` when {state}");
            world.record(&decision).expect("the record folds");
            assert_eq!(world.summary(), before, "`{command}` when {state}");
        }
    }
}
