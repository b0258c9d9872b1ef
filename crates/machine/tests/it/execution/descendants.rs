//! Runs below one that is cut short.

use servo_machine::{Answer, Command, ExecutionCommand, SignalKind, StartExecution};
use servo_model::event::Lineage;
use servo_model::operation::ErrorObject;
use servo_model::{RunId, RunStatus};

use super::lifecycle::signal;
use super::world::{World, invoke, start, wait};

fn id(text: &str) -> RunId {
    RunId::parse(text).unwrap()
}

/// A run of the third level: `inv_root` has started `inv_middle`, which has started it.
fn below() -> StartExecution {
    let middle = Lineage::of_child(&id("inv_root"), None);
    let mut start = start(true);
    start.belong_to(Lineage::of_child(&id("inv_middle"), Some(&middle)));
    start
}

#[test]
fn a_lineage_says_root_level_and_who_is_above() {
    let lineage = *below().start.lineage.clone().unwrap();
    assert_eq!((lineage.root.as_str(), lineage.level), ("inv_root", 3));
    assert_eq!(lineage.ancestors, [id("inv_root"), id("inv_middle")]);
    // What undoes a run stands where what it has started would, but nothing that cancels that cancels it.
    let undoing = Lineage::of_undoing(&id("inv_1"), Some(&lineage));
    assert_eq!((undoing.root.as_str(), undoing.level, undoing.ancestors.len()), ("inv_root", 4, 0));
    let of_it = Lineage::of_child(&id("inv_undo"), Some(&undoing));
    assert_eq!((of_it.root.as_str(), of_it.level, of_it.ancestors), ("inv_root", 5, vec![id("inv_undo")]));
    assert_eq!(World::with(below()).state.root(), Some(&id("inv_root")));
    assert_eq!(World::new().state.root(), None, "a root names none");
}

/// Only what is cut short takes others along, and only if it has started any.
#[test]
fn the_end_of_a_run_that_is_cut_short_is_followed() {
    type End = fn(&mut World);
    let ends: [(&str, bool, End); 6] = [
        ("cancel", true, |world| drop(world.execute(&signal(1, SignalKind::Cancel)).unwrap())),
        ("stop", true, |world| {
            let error = ErrorObject::new("Why", "because");
            drop(world.run(ExecutionCommand::Stop { error, by: "ops".to_owned() }).unwrap());
        }),
        ("terminate", true, |world| {
            drop(world.execute(&Command::Terminate { by: "ops".to_owned(), reason: "why".to_owned() }).unwrap());
        }),
        ("time out", true, |world| {
            world.advance(100_000);
            world.tick();
        }),
        ("success", false, |world| drop(world.answer(Answer::Succeeded(None)).unwrap())),
        ("failure", false, |world| drop(world.answer(Answer::Failed(None)).unwrap())),
    ];
    for (name, follows, end) in ends {
        for starts in [true, false] {
            let mut world = World::running();
            world.checkpoint(vec![if starts { invoke("i", "g") } else { wait("w", 1_000_000) }]).unwrap();
            end(&mut world);
            assert!(world.state.status.is_terminal(), "{name}");
            let dispatched = world.dispatched.contains(&("descendants".to_owned(), 1));
            assert_eq!(dispatched, follows && starts, "{name}, {starts}");
        }
    }
}

#[test]
fn a_run_ends_with_one_above_it() {
    let end_with = |ancestor: &str| ExecutionCommand::EndWith { ancestor: id(ancestor) };
    for ancestor in ["inv_root", "inv_middle"] {
        let mut world = World::with(below());
        world.invoke();
        world.checkpoint(vec![invoke("i", "g")]).unwrap();
        world.run(end_with(ancestor)).unwrap();
        assert_eq!(world.state.status, RunStatus::Cancelled);
        assert_eq!(world.dispatched, [], "what is below it is reached from above, and nobody waits for it");
        let error = world.execution().head.ended.clone().unwrap().error.unwrap();
        assert!(error.error_message.unwrap().contains(ancestor));
        assert_eq!(world.run(end_with(ancestor)).unwrap(), [], "again: nothing");
    }
    for (start, other) in [(below(), "inv_1"), (below(), "inv_other"), (start(true), "inv_root")] {
        let mut world = World::with(start);
        world.invoke();
        assert_eq!(world.run(end_with(other)).unwrap(), [], "it is not below that one");
        assert_eq!(world.state.status, RunStatus::Running);
    }
}
