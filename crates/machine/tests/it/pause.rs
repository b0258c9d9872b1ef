//! PAUSE, draining and its timeout, RESUME.

use servo_model::RunSnapshot;
use servo_model::snapshot::Substatus;

use crate::check::{check, given_world};

/// ES-100: paused at once, what waits is taken back, what is in flight is left alone.
#[test]
fn a_pause_takes_back_what_was_not_handed_out() {
    check(
        "a b c<a",
        "new; start a; +5",
        "pause reason=lunch",
        "SignalAccepted 1 s1 PAUSE reason=lunch
         RunPaused 1 drain=t+1005 reason=lunch
         > withdraw b#1",
    );
    check("a", "new", "pause", "SignalAccepted 1 s1 PAUSE\nRunPaused 1\n> withdraw a#1");
}

/// ES-100: a paused run says that it drains, and for how many.
#[test]
fn a_paused_run_drains() {
    let world = given_world("a b c", "new; start a; start b; pause");
    let snapshot = RunSnapshot::from(world.state());
    assert_eq!(snapshot.substatus, Some(Substatus::Draining));
    assert!(snapshot.message.is_some_and(|text| text.contains("Waiting for 2 in-flight tasks")));
    let drained = given_world("a b c", "new; start a; start b; pause; ok a; ok b");
    assert_eq!(RunSnapshot::from(drained.state()).substatus, None);
}

/// ES-100: results are recorded, and nothing new is scheduled.
#[test]
fn results_come_in_while_paused() {
    check("a b<a", "new; start a; pause", "ok a", "StepCompleted a#1/1\n> deliver a#1");
    check("a", "new; start a; pause", "ok a", "StepCompleted a#1/1\n> deliver a#1");
    check(
        "a b<a",
        "new; start a; pause",
        "fail a",
        "StepFailed a#1/1 BOOM
         StepSkipped b#1 UPSTREAM_FAILED by=a
         > abandon a#1 BOOM",
    );
    let retried = "StepFailed a#1/1 BOOM\nStepRetryScheduled a#2\n> abandon a#1 BOOM";
    check("a*2", "new; start a; pause", "fail a retryable", retried);
    check(
        "a b<a",
        "new; start a; pause; ok a",
        "start b",
        "! ILLEGAL_TRANSITION the run is PAUSED and starts no steps",
    );
}

/// ES-101
#[test]
fn the_drain_times_out_once() {
    let given = "new; start a; pause";
    check("a", &format!("{given}; +999"), "tick", "nothing");
    let timeout = "DrainTimedOut 1 in-flight=1
                   > alert PAUSE_DRAIN_TIMEOUT 1 steps were still in flight at the drain timeout";
    let world = check("a", &format!("{given}; +1000"), "tick", timeout);
    assert_eq!(RunSnapshot::from(world.state()).substatus, None);
    check("a", &format!("{given}; +1000; tick"), "tick", "nothing");
    check("a", &format!("{given}; ok a; +1000"), "tick", "nothing");
    check("a", "new; pause; +5000", "tick", "nothing");
    let resumed = "SignalAccepted 2 s2 RESUME\nRunResumed 1";
    check("a", &format!("{given}; +1000; tick"), "resume", resumed);
}

/// ES-101: each pause has a timeout of its own, as long as the policy says.
#[test]
fn a_second_pause_drains_again() {
    let given = "new; start a; pause; +1000; tick; resume; drain=50";
    check("a", given, "pause", "SignalAccepted 3 s3 PAUSE\nRunPaused 2 drain=t+1050");
    let timeout = "DrainTimedOut 2 in-flight=1
                   > alert PAUSE_DRAIN_TIMEOUT 1 steps were still in flight at the drain timeout";
    check("a", &format!("{given}; pause; +50"), "tick", timeout);
}

/// ES-102, option A: the default takes the result.
#[test]
fn a_late_result_counts() {
    let given = "new; start a; pause; +1000; tick";
    check("a b<a", given, "ok a", "StepCompleted a#1/1\n> deliver a#1");
    let resumed = "SignalAccepted 2 s2 RESUME\nRunResumed 1\n> dispatch b#1";
    check("a b<a", &format!("{given}; ok a"), "resume", resumed);
}

/// ES-102, option B: refused and recorded, without a change of state; the step runs again after the resume.
#[test]
fn a_late_result_is_an_orphan_where_so_configured() {
    let given = "orphans; new; start a; pause; +1000; tick";
    let orphan = "TaskOrphaned a#1/1\n! ORPHANED_TASK step `a` finished after the drain timeout of the pause";
    let before = given_world("a b<a", given);
    for command in ["ok a", "fail a"] {
        let mut after = check("a b<a", given, command, orphan).state().clone();
        after.last_event_seq = before.state().last_event_seq;
        assert_eq!(after, *before.state());
    }
    check(
        "a b<a",
        &format!("{given}; ?ok a"),
        "resume",
        "SignalAccepted 2 s2 RESUME
         RunResumed 1
         StepFailed a#1/1 ORPHANED_TASK
         StepRetryScheduled a#2
         > abandon a#1 ORPHANED_TASK
         > dispatch a#2",
    );
    // Handed out again while the run is paused: that report is another fact, under a key of its own.
    let second = "TaskOrphaned a#1/2\n! ORPHANED_TASK step `a` finished after the drain timeout of the pause";
    check("a b<a", &format!("{given}; ?ok a; take a"), "ok a#1/2", second);
    let stale = "! ATTEMPT_SUPERSEDED attempt 1 of step `a` was superseded";
    let resumed = check("a b<a", &format!("{given}; resume"), "ok a", stale);
    assert!(resumed.state().steps[0].past[0].error.as_ref().is_some_and(|error| error.retryable));
    let in_time = "StepCompleted a#1/1\n> deliver a#1";
    check("a b<a", "orphans; new; start a; pause; +999", "ok a", in_time);
}

/// ES-103: what was done before the pause is not done again, and what is in flight is not started twice.
#[test]
fn a_resume_schedules_what_remains() {
    check(
        "a b<a c d<c",
        "new; start a; ok a; start c; pause",
        "resume",
        "SignalAccepted 2 s2 RESUME
         RunResumed 1
         > dispatch b#1",
    );
    check(
        "a b<a c d<c",
        "new; start a; start c; pause; ok a; ok c",
        "resume",
        "SignalAccepted 2 s2 RESUME
         RunResumed 1
         > dispatch b#1
         > dispatch d#1",
    );
}

/// ES-103
#[test]
fn a_run_that_finished_while_paused_ends_with_the_resume() {
    let done = "SignalAccepted 2 s2 RESUME\nRunResumed 1\nRunCompleted r1";
    check("a", "new; start a; pause; ok a", "resume", done);
    let failed = "SignalAccepted 2 s2 RESUME\nRunResumed 1\nRunFailed r1 BOOM step=a";
    check("a", "new; start a; pause; fail a", "resume", failed);
}

#[test]
fn a_delay_goes_on_through_a_pause() {
    let given = "new; start a; fail a retryable; pause";
    let waits = "SignalAccepted 2 s2 RESUME\nRunResumed 1";
    check("a*2~500", &format!("{given}; +499"), "resume", waits);
    check("a*2~500", &format!("{given}; +499; resume; +1"), "tick", "> dispatch a#2");
    let over = "SignalAccepted 2 s2 RESUME\nRunResumed 1\n> dispatch a#2";
    check("a*2~500", &format!("{given}; +500"), "resume", over);
    check("a*2~500", &format!("{given}; +500"), "tick", "nothing");
}

/// Pause, resume, pause again: each is a fact of its own.
#[test]
fn pauses_and_resumes_are_counted() {
    let given = "new; pause; resume";
    check("a", given, "pause", "SignalAccepted 3 s3 PAUSE\nRunPaused 2\n> withdraw a#1");
    check("a", &format!("{given}; pause"), "resume", "SignalAccepted 4 s4 RESUME\nRunResumed 2\n> dispatch a#1");
}
