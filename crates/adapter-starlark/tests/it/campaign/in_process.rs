//! The control of the campaign: the same programs evaluated without a child of their own end the process that evaluates them. It is
//! another one, with limits that keep the machine safe.

use std::os::unix::process::ExitStatusExt as _;

use starlark::environment::{GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::Value;

use crate::hostile::{corpus, resident_kb};

const PROGRAM: &str = "SERVO_TEST_IN_PROCESS";
const PEAK: &str = "peak_kb=";
/// Address space in kB and CPU time in seconds, and no file of the corpse.
const LIMITS: &str = "ulimit -v 786432; ulimit -t 10; ulimit -c 0; exec \"$0\" \"$@\"";

/// S9: what the corpus holds is hostile indeed: each of its programs that a child is refused memory for ends the process that evaluates
/// it, or makes it grow by more than all that the child was given.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this is how the test tells its own other process what to evaluate")]
async fn the_same_programs_without_a_child_end_the_process_or_blow_it_up() {
    if let Ok(number) = std::env::var(PROGRAM) {
        let before = resident_kb();
        let source = corpus().swap_remove(number.parse().unwrap()).1;
        // A host may live on after a panic. What it took, it took.
        drop(std::panic::catch_unwind(|| evaluate(&source)));
        return println!("{PEAK}{}", peak_kb().saturating_sub(before));
    }
    let (mut ended, mut grown) = (Vec::new(), Vec::new());
    for (number, (what, _, limits)) in corpus().into_iter().enumerate() {
        if limits != ["memory_mb"] {
            continue;
        }
        let mut again = tokio::process::Command::new("sh");
        again.args(["-c", LIMITS]).arg(std::env::current_exe().unwrap()).args(["--nocapture", "--exact"]);
        again.arg("campaign::in_process::the_same_programs_without_a_child_end_the_process_or_blow_it_up");
        let output = again.env(PROGRAM, number.to_string()).kill_on_drop(true).output().await.unwrap();
        if output.status.signal().is_some() {
            ended.push(what);
            continue;
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, rest) = said.split_once(PEAK).unwrap_or_else(|| panic!("{what}: {said}"));
        let peak: u64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        assert!(peak > super::MEMORY_MB * 1_024, "{what} was content with {peak} kB");
        grown.push((what, peak));
    }
    println!("these ended the process: {ended:?}; these took kB: {grown:?}");
    assert!(ended.len() >= 3 && ended.len() + grown.len() >= 10, "{ended:?} {grown:?}");
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// As a careless host would.
fn evaluate(source: &str) {
    let globals = GlobalsBuilder::extended_by(&[LibraryExtension::StructType, LibraryExtension::Json]).build();
    let ast = AstModule::parse("main.star", source.to_owned(), &Dialect::Standard).unwrap();
    let module = Module::new();
    let mut eval = Evaluator::new(&module);
    if eval.eval_module(ast, &globals).is_err() {
        return;
    }
    let main = module.get("main").unwrap();
    drop(eval.eval_function(main, &[Value::new_none(), Value::new_none()], &[]));
}
