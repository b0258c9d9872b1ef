//! Branches that wait go on in the same invocation while others run, and nothing is held when nobody runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration as Time;

use servo_sdk::{
    Clock as _, DurableContext, DurableError, Duration, InvocationStatus, Options, StepConfig, WaitDecision,
    WaitForConditionConfig, branch,
};

use crate::service::World;

/// §23: while one branch works for a minute, the waits of another end in time.
#[test]
fn a_due_wait_ends_while_another_branch_runs() {
    let world = World::new("null").answer("news", 25, Ok("7".into()));
    let clock = &world.clock;
    let began = clock.millis();
    let report = world.run(async |_: (), ctx: DurableContext| {
        let batch = ctx
            .parallel(
                vec![
                    branch(async |child: DurableContext| {
                        Ok(child
                            .step(
                                async |_| {
                                    clock.sleep(Time::from_secs(60)).await;
                                    Ok(clock.millis() - began)
                                },
                                None,
                            )
                            .await?)
                    }),
                    branch(async |child: DurableContext| {
                        child.wait(Duration::from_seconds(5), None).await?;
                        child.wait(Duration::from_seconds(10), None).await?;
                        Ok(clock.millis() - began)
                    }),
                    branch(async |child: DurableContext| {
                        let config = WaitForConditionConfig::new(0, |state: &u32, _| match state {
                            3.. => WaitDecision::Done,
                            _ => WaitDecision::Continue(Duration::from_seconds(4)),
                        });
                        child.wait_for_condition(|state, _| Ok(state + 1), config).await?;
                        Ok(clock.millis() - began)
                    }),
                    branch(async |child: DurableContext| {
                        let config = servo_sdk::CallbackConfig { name: Some("news".into()), ..Default::default() };
                        child.create_callback::<u32>(Some(config)).await?.result().await?;
                        Ok(clock.millis() - began)
                    }),
                ],
                None,
            )
            .await?;
        Ok(batch.get_results()?.into_iter().copied().collect::<Vec<i64>>())
    });
    assert_eq!(report.invocations, 1, "nobody had to be invoked again");
    let times: Vec<i64> = serde_json::from_str(&report.result.unwrap()).unwrap();
    assert_eq!(times[..3], [60_000, 15_000, 8_000]);
    assert!((25_000..=35_000).contains(&times[3]), "callbacks are asked for every 10 s: {times:?}");
}

/// Waits that are all that is left suspend at once: no call is spent on asking, no time passes in the process.
#[test]
fn nothing_is_held_when_nobody_runs() {
    let world = World::new("null");
    let began = world.clock.millis();
    let handler = async |_: (), ctx: DurableContext| {
        let waits = vec![ctx.wait(Duration::from_seconds(5), None), ctx.wait(Duration::from_seconds(9), None)];
        ctx.all(waits).await.map(|_| ())
    };
    let answer = world.invoke(&handler, world.options()).unwrap().unwrap();
    assert_eq!((answer.status, world.clock.millis() - began), (InvocationStatus::Pending, 0));
    assert_eq!(world.attempts(), 1, "both waits and their group in one call");
}

/// Who asks for it stays for a wait that is nearly over.
#[test]
fn a_short_wait_can_be_sat_out() {
    let world = World::new("null");
    let options = Options { stay_awake: Time::from_secs(3), ..world.options() };
    let report = world.run_with(
        async |_: (), ctx: DurableContext| {
            ctx.wait(Duration::from_seconds(2), None).await?;
            ctx.wait(Duration::from_seconds(60), None).await
        },
        options,
    );
    assert_eq!((report.status, report.invocations), (InvocationStatus::Succeeded, 2));
}

/// The START of a step that takes long is not kept back with its outcome.
#[test]
fn a_long_step_is_announced() {
    let world = World::new("null");
    let clock = &world.clock;
    let seen = AtomicUsize::new(0);
    world.run(async |_: (), ctx: DurableContext| {
        ctx.step(
            async |_| {
                clock.sleep(Time::from_millis(900)).await;
                assert_eq!(world.calls().len(), 0);
                clock.sleep(Time::from_millis(600)).await;
                seen.store(world.calls().len(), Ordering::SeqCst);
                Ok(())
            },
            Some(StepConfig::default()),
        )
        .await
    });
    assert_eq!((seen.load(Ordering::SeqCst), world.calls().len()), (1, 2));
}

/// Suspension cannot be caught: code behind a wait does not run before the wait is over, whatever it does with errors.
#[test]
fn suspension_cannot_be_caught() {
    let world = World::new("null");
    let behind = AtomicUsize::new(0);
    let handler = async |_: (), ctx: DurableContext| -> Result<(), DurableError> {
        let _ = ctx.wait(Duration::from_seconds(5), None).await;
        behind.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let first = world.invoke(&handler, world.options()).unwrap().unwrap();
    assert_eq!((first.status, behind.load(Ordering::SeqCst)), (InvocationStatus::Pending, 0));
    assert_eq!(world.run(handler).status, InvocationStatus::Succeeded);
    assert_eq!(behind.load(Ordering::SeqCst), 1);
}
