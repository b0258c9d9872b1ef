//! Runs as files, and ending or removing single runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use servo_machine::{Refusal, SignalKind};
use servo_model::{RunId, RunStatus, TenantId};
use servo_runtime::Error;
use servo_runtime::transfer::{Import, ImportedId, RunFile};
use servo_sim::faults::{Fate, Fault, Scripted};
use servo_sim::{Node, Sabotage};
use servo_store::Scope;

use crate::world::{World, plan, signal};

fn export(world: &World, node: &Node, run_id: &RunId) -> RunFile {
    let (engine, run_id) = (node.runtime.engine().clone(), run_id.clone());
    world.block_on(async move { engine.export(&Scope::System, &run_id).await }).unwrap()
}

fn import(world: &World, node: &Node, tenant: &str, file: RunFile) -> Result<RunId, Error> {
    import_as(world, node, tenant, ImportedId::Kept, file)
}

fn import_as(world: &World, node: &Node, tenant: &str, id: ImportedId, file: RunFile) -> Result<RunId, Error> {
    let (engine, tenant) = (node.runtime.engine().clone(), TenantId::parse(tenant).unwrap());
    world.block_on(async move { engine.import(Import { tenant: &tenant, by: "me", id }, file).await })
}

/// The file as it goes over the wire and comes back.
fn sent(file: &RunFile) -> RunFile {
    serde_json::from_str(&serde_json::to_string(file).unwrap()).unwrap()
}

fn documents(file: &RunFile) -> Vec<&str> {
    file.events.iter().map(|event| event.get()).collect()
}

/// A run with a retry, a pause and a skipped step behind it.
fn eventful(world: &World, node: &Node) -> RunId {
    let mut request = plan(json!([
        {"stepId": "a", "with": {"sleepMs": 500, "failAttempts": 1}, "retry": {"maxAttempts": 2, "delayMs": 100}},
        {"stepId": "größe", "dependsOn": ["a"]},
        {"stepId": "c", "dependsOn": ["größe"]},
    ]));
    request.run_request_id = Some("r1".to_owned());
    let run_id = world.start(node, request).unwrap().run_id;
    world.pass_ms(200);
    world.signal(node, &run_id, "p", SignalKind::Pause).unwrap();
    world.pass_ms(1_000);
    world.signal(node, &run_id, "s", SignalKind::SkipStep(servo_model::StepId::parse("c").unwrap())).unwrap();
    world.signal(node, &run_id, "r", SignalKind::Resume).unwrap();
    world.wait_status(node, &run_id, RunStatus::Completed);
    run_id
}

#[test]
fn a_run_survives_the_way_through_a_file() {
    let (here, there) = (World::new(1), World::new(2));
    let (node, other) = (here.leader(), there.leader());
    let run_id = eventful(&here, &node);
    let file = export(&here, &node, &run_id);
    assert_eq!(import(&there, &other, "acme", sent(&file)).unwrap(), run_id);
    let back = export(&there, &other, &run_id);
    let (mark, before) = back.events.split_last().unwrap();
    let before: Vec<&str> = before.iter().map(|event| event.get()).collect();
    assert_eq!(before, documents(&file), "byte for byte");
    assert!(mark.get().contains("\"eventType\":\"RunImported\""), "{}", mark.get());
    assert_eq!(back.request_key, file.request_key);
    let mut imported = there.snapshot(&other, &run_id);
    assert_eq!(imported.imported_by.take().as_deref(), Some("me"));
    assert!(imported.imported_at.take().is_some());
    imported.last_event_seq -= 1;
    assert_eq!(imported, here.snapshot(&node, &run_id));
    there.verify();
    // Again is refused, here and there.
    for (world, node) in [(&here, &node), (&there, &other)] {
        assert!(matches!(
            import(world, node, "acme", sent(&file)),
            Err(Error::Store(servo_store::Error::RunExists { .. }))
        ));
    }
}

#[test]
fn a_cut_or_changed_file_is_refused() {
    let (here, there) = (World::new(3), World::new(4));
    let (node, other) = (here.leader(), there.leader());
    let run_id = eventful(&here, &node);
    let file = export(&here, &node, &run_id);
    let raw = |text: String| RawValue::from_string(text).unwrap();
    type Tamper = fn(&mut RunFile);
    let tampered: [(&str, Tamper); 6] = [
        ("an event less", |file| drop(file.events.pop())),
        ("no events", |file| file.events.clear()),
        ("events out of order", |file| file.events.swap(3, 4)),
        ("an event twice", |file| {
            let again = file.events[3].clone();
            file.events.insert(3, again);
        }),
        ("another format", |file| file.format = "servo.run/2".to_owned()),
        ("another digest", |file| file.sha256 = servo_canon::Digest::of(b"x")),
    ];
    for (what, tamper) in tampered {
        let mut file = sent(&file);
        tamper(&mut file);
        assert!(import(&there, &other, "acme", file).is_err(), "{what}");
    }
    let mut edited = sent(&file);
    let about_a = edited.events.iter().position(|event| event.get().contains("\"stepId\":\"a\"")).unwrap();
    edited.events[about_a] = raw(edited.events[about_a].get().replace("\"stepId\":\"a\"", "\"stepId\":\"b\""));
    let error = import(&there, &other, "acme", edited).unwrap_err();
    assert!(matches!(&error, Error::Invalid(invalid) if invalid.field == "sha256"), "{error}");
    // A digest that was recomputed does not make a wrong event right.
    let mut forged = sent(&file);
    let mut event: Value = serde_json::from_str(forged.events[4].get()).unwrap();
    event["runSeq"] = json!("five");
    forged.events[4] = raw(event.to_string());
    forged.sha256 = servo_canon::Digest::of_parts(&documents(&forged), '\n');
    let error = import(&there, &other, "acme", forged).unwrap_err();
    assert!(matches!(&error, Error::Invalid(invalid) if invalid.field.starts_with("events/4")), "{error}");
    assert!(there.rows().is_empty());
}

/// A file may say of itself what it likes, with a digest that is right: what is read of it here is marked as what a file said.
#[test]
fn a_forged_file_cannot_take_the_mark_away() {
    let (here, there) = (World::new(11), World::new(12));
    let (node, other) = (here.leader(), there.leader());
    let run_id = eventful(&here, &node);
    let raw = |event: &Value| RawValue::from_string(event.to_string()).unwrap();
    let forge = |change: &dyn Fn(&mut Value)| {
        let mut file = sent(&export(&here, &node, &run_id));
        let mut last: Value = serde_json::from_str(file.events.last().unwrap().get()).unwrap();
        last["runSeq"] = json!(last["runSeq"].as_u64().unwrap() + 1);
        last["eventType"] = json!("RunImported");
        last["idempotencyKey"] = json!(servo_canon::Digest::of(b"forged").to_string());
        last["emittedAt"] = json!("2999-01-01T00:00:00.000Z");
        last.as_object_mut().unwrap().remove("status");
        (last["logicalAttemptId"], last["importedBy"]) = (json!(u32::MAX), json!("boss"));
        change(&mut last);
        file.events.push(raw(&last));
        file.sha256 = servo_canon::Digest::of_parts(&documents(&file), '\n');
        file
    };
    let imported = import(&there, &other, "acme", forge(&|_| {})).unwrap();
    let snapshot = there.snapshot(&other, &imported);
    assert_eq!(snapshot.imported_by.as_deref(), Some("me"));
    assert!(snapshot.imported_at.unwrap() < servo_model::Timestamp::parse("2999-01-01T00:00:00.000Z").unwrap());
    // A sequence behind which there is none.
    for seq in [i64::MAX as u64, u64::MAX] {
        let error = import(&there, &other, "globex", forge(&|last| last["runSeq"] = json!(seq))).unwrap_err();
        assert!(matches!(&error, Error::Invalid(_) | Error::Store(_)), "{error}");
    }
    there.verify();
}

/// Whoever imports under an id of its own learns nothing about the ids of others, and its own import is known again.
#[test]
fn an_import_says_nothing_about_others_runs() {
    let world = World::new(13);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a"}]));
    world.wait_status(&node, &run_id, RunStatus::Completed);
    let taken = export(&world, &node, &run_id);
    let import = |tenant: &str, file: &RunFile| import_as(&world, &node, tenant, ImportedId::New, sent(file));
    let copy = import("acme", &taken).unwrap();
    assert_ne!(copy, run_id);
    let mark = export(&world, &node, &copy);
    assert!(mark.events.last().unwrap().get().contains(run_id.as_str()), "it says what it was");
    // The same file, after the run that has its id is gone.
    world
        .block_on({
            let (engine, run_id) = (node.runtime.engine().clone(), run_id.clone());
            async move { engine.delete(&Scope::System, &run_id, "me").await }
        })
        .unwrap();
    let free = import("globex", &taken).unwrap();
    assert!(free != run_id && free != copy, "as while it was there, and each tenant its own");
    for tenant in ["acme", "globex"] {
        let again = import(tenant, &taken).unwrap_err();
        assert!(matches!(again, Error::Store(servo_store::Error::RunExists { .. })), "{again}");
    }
    world.verify();
}

/// An imported run belongs to whoever imported it, also for what happens to it later.
#[test]
fn an_imported_run_is_its_importers() {
    let (here, there) = (World::new(5), World::new(6));
    let (node, other) = (here.leader(), there.leader());
    let run_id = here.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    here.wait_in_flight(&node, &run_id);
    import(&there, &other, "acme", sent(&export(&here, &node, &run_id))).unwrap();
    let acme = Scope::Tenant(TenantId::parse("acme").unwrap());
    let origin = Scope::Tenant(TenantId::default_tenant());
    // In the cache or not: the tenant it came from does not see it.
    for round in 0..2 {
        let error = there.execute(&other, signal(origin.clone(), &run_id, "x", SignalKind::Cancel)).unwrap_err();
        assert!(matches!(error, Error::Store(servo_store::Error::NotFound)), "round {round}: {error}");
        let (engine, id, scope) = (other.runtime.engine().clone(), run_id.clone(), acme.clone());
        there.block_on(async move { engine.snapshot(&scope, &id).await }).unwrap();
    }
    let outcome = there.execute(&other, signal(acme.clone(), &run_id, "c", SignalKind::Cancel)).unwrap();
    assert_eq!(outcome.view.status, RunStatus::Cancelled);
    assert_eq!(there.rows()[0].tenant.as_str(), "acme");
    assert!(there.stored(&run_id).iter().all(|event| event.tenant.as_str() == "acme"));
}

#[test]
fn a_run_can_be_ended_whatever_it_does() {
    let world = World::new(7);
    let node = world.leader();
    let running = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    let paused = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    let mut gated = plan(json!([{"stepId": "a"}]));
    gated.approval_required = true;
    let pending = world.start(&node, gated).unwrap().run_id;
    world.wait_in_flight(&node, &running);
    world.wait_in_flight(&node, &paused);
    world.signal(&node, &paused, "p", SignalKind::Pause).unwrap();
    let terminate = |run_id: &RunId| {
        let (engine, run_id) = (node.runtime.engine().clone(), run_id.clone());
        world.block_on(async move { engine.terminate(&Scope::System, &run_id, "operator", "enough").await })
    };
    for run_id in [&running, &paused, &pending] {
        terminate(run_id).unwrap();
        let snapshot = world.snapshot(&node, run_id);
        assert_eq!((snapshot.status, snapshot.message.as_deref()), (RunStatus::Cancelled, Some("enough")));
        assert!(matches!(terminate(run_id), Err(Error::Refused(Refusal::Closed(RunStatus::Cancelled)))));
    }
    world.pass(Duration::from_secs(120));
    let backlog = world.runtime_snapshot().backlog;
    assert_eq!((backlog.pending, backlog.notified), (0, 0));
    world.verify();
}

#[test]
fn a_deleted_run_is_gone_and_its_request_can_be_made_again() {
    let world = World::new(8);
    let node = world.leader();
    let mut request = plan(json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    request.run_request_id = Some("r1".to_owned());
    let run_id = world.start(&node, request.clone()).unwrap().run_id;
    world.wait_in_flight(&node, &run_id);
    let delete = |scope: Scope| {
        let (engine, run_id) = (node.runtime.engine().clone(), run_id.clone());
        world.block_on(async move { engine.delete(&scope, &run_id, "operator").await })
    };
    let foreign = Scope::Tenant(TenantId::parse("acme").unwrap());
    assert!(matches!(delete(foreign), Err(Error::Store(servo_store::Error::NotFound))));
    delete(Scope::System).unwrap();
    assert!(world.rows().is_empty());
    assert!(world.log().iter().all(|event| event.run_id != run_id));
    assert!(matches!(world.try_snapshot(&node, &run_id), Err(Error::Store(servo_store::Error::NotFound))));
    assert!(matches!(delete(Scope::System), Err(Error::Store(servo_store::Error::NotFound))));
    let again = world.start(&node, request).unwrap();
    assert!(again.created && again.run_id != run_id);
    world.wait_status(&node, &again.run_id, RunStatus::Completed);
    world.verify();
}

/// Ends a run while the store's answer to that gets lost.
fn end_with_a_lost_answer(sabotage: Sabotage) -> (Result<(), Error>, usize) {
    let faults = Arc::new(Scripted::default());
    let world = World::with(9, |cluster| {
        cluster.faults = faults.clone();
        cluster.sabotage = sabotage;
    });
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    world.wait_in_flight(&node, &run_id);
    faults.next("append", 1, Fate { fault: Some(Fault::ExecuteThenUnavailable), ..Fate::default() });
    let (engine, id) = (node.runtime.engine().clone(), run_id.clone());
    let ended = world.block_on(async move { engine.terminate(&Scope::System, &id, "operator", "enough").await });
    (ended, world.count(&run_id, "RunCancelled"))
}

/// What was done is reported as done, also when the store's answer got lost.
#[test]
fn an_end_whose_answer_is_lost_is_an_end() {
    let (ended, recorded) = end_with_a_lost_answer(Sabotage::None);
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(recorded, 1);
}

/// The control: a store that says that nothing was written makes the engine try again, and find a run that has ended.
#[test]
fn control_a_store_that_denies_its_write_is_found() {
    let (ended, recorded) = end_with_a_lost_answer(Sabotage::DenyMaybeWritten);
    assert!(matches!(ended, Err(Error::Refused(Refusal::Closed(RunStatus::Cancelled)))), "{ended:?}");
    assert_eq!(recorded, 1);
}
