//! Export, import, forced end, deletion, dead letters, and the store as a whole.

use reqwest::Method;
use serde_json::json;
use servo_store::relay::OutboxRow;
use servo_store::{Position, Scope};

use crate::harness::{Options, Server, endless, keys, one_step, start};

#[tokio::test]
async fn a_run_moves_from_one_store_to_another() {
    let (from, to) = (Server::start().await, Server::start().await);
    let run = from.start_run(one_step()).await;
    let snapshot = from.finish(&run).await;
    let file = from.get(&format!("/v1/runs/{run}/export")).await;
    assert_eq!(file.headers["content-disposition"], format!("attachment; filename=\"{run}.run.json\""));
    let imported = to.post_text("/v1/runs/import", &file.text).await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    assert_eq!(imported.run_id(), run);
    let mut shown = to.get(&format!("/v1/runs/{run}")).await.json;
    let shown_members = shown.as_object_mut().unwrap();
    assert_eq!(shown_members.remove("importedBy"), Some(json!("dev")));
    assert!(shown_members.remove("importedAt").is_some());
    shown["lastEventSeq"] = json!(shown["lastEventSeq"].as_u64().unwrap() - 1);
    assert_eq!(shown, snapshot);
    let path = format!("/v1/runs/{run}/events");
    let (mine, theirs) = (from.get(&path).await.json, to.get(&path).await.json);
    let (mark, before) = theirs["events"].as_array().unwrap().split_last().unwrap();
    assert_eq!(mine["events"].as_array().unwrap(), before);
    assert_eq!((&mark["eventType"], &mark["importedBy"]), (&json!("RunImported"), &json!("dev")));
    let again = to.post_text("/v1/runs/import", &file.text).await;
    assert_eq!(again.status, 409);
    again.is_problem("RUN_EXISTS");
    let detail = again.json["detail"].as_str().unwrap();
    assert!(detail.contains(run.as_str()), "{detail}");
    let mut changed = file.json.clone();
    changed["events"][0]["emittedBy"] = json!("somebody");
    let changed = to.post("/v1/runs/import", &changed).await;
    changed.is_problem("SCHEMA_VALIDATION_FAILED");
    changed.names("/sha256");
}

#[tokio::test]
async fn a_run_is_ended_by_force_and_removed() {
    let server = Server::start().await;
    let run = server.start_run(endless()).await;
    let path = format!("/v1/runs/{run}");
    let ended = server.post(&format!("{path}/terminate"), &json!({"reason": "stuck"})).await;
    assert_eq!((ended.status.as_u16(), ended.run_id()), (200, run.clone()));
    assert_eq!(server.get(&path).await.json["status"], "CANCELLED");
    server.post(&format!("{path}/terminate"), &json!({"reason": "again"})).await.is_problem("RUN_CLOSED");
    let gone = server.send(Method::DELETE, &path, "", None).await;
    assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    server.get(&path).await.is_problem("RUN_NOT_FOUND");
    server.send(Method::DELETE, &path, "", None).await.is_problem("RUN_NOT_FOUND");
    let running = server.start_run(endless()).await;
    assert_eq!(server.send(Method::DELETE, &format!("/v1/runs/{running}"), "", None).await.status, 204);
}

/// A run whose log cannot be read is shown as set aside, can still be read event by event, and can be ended.
#[tokio::test]
async fn a_run_that_cannot_be_read_can_be_ended() {
    let (elsewhere, server) = (Server::start().await, Server::start().await);
    let run = elsewhere.start_run(endless()).await;
    let file = elsewhere.get(&format!("/v1/runs/{run}/export")).await;
    assert_eq!(server.import_as("", &file).await.status, 201);
    server.runtime.engine().store().quarantine(&run, "event 3: makes no sense").await.unwrap();
    let path = format!("/v1/runs/{run}");
    let shown = server.get(&path).await;
    assert_eq!(shown.status, 409);
    shown.is_problem("RUN_QUARANTINED");
    assert_eq!(server.get("/v1/runs").await.json["items"][0]["quarantined"], "event 3: makes no sense");
    assert_eq!(server.get(&format!("{path}/events")).await.status, 200);
    assert_eq!(server.follow(&run, "").await.last().unwrap().event, "end", "nothing more will come");
    let terminate = server.post(&format!("{path}/terminate"), &json!({"reason": "poison"})).await;
    assert_eq!(terminate.status, 200, "{}", terminate.text);
    assert_eq!(server.get("/v1/runs?status=canceled").await.json["items"][0]["runId"], run.as_str());
}

#[tokio::test]
async fn dead_letters_are_listed_in_pages_and_tried_again() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    server.finish(&run).await;
    let store = server.runtime.engine().store();
    let events = store.read_run(&Scope::System, &run, 0, 3).await.unwrap().events;
    for event in &events {
        let row = OutboxRow {
            position: event.position,
            run_id: run.clone(),
            run_seq: event.run_seq,
            tenant: event.tenant.clone(),
            attempts: 8,
            next_at: event.emitted_at,
            last_error: "the bus refused it".to_owned(),
        };
        store.outbox_put(row.clone()).await.unwrap();
        store.outbox_bury(row).await.unwrap();
    }
    let first = server.get("/v1/dead-letters?limit=2").await.json;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    assert_eq!(first["items"][0]["position"], events[0].position.to_string());
    assert_eq!(first["items"][0]["lastError"], "the bus refused it");
    let after = first["nextAfter"].as_str().unwrap();
    let second = server.get(&format!("/v1/dead-letters?limit=2&after={after}")).await.json;
    assert_eq!(second["items"].as_array().unwrap().len(), 1);
    assert!(second.get("nextAfter").is_none());
    let one = json!({"position": events[1].position.to_string()});
    assert_eq!(server.post("/v1/dead-letters/redrive", &one).await.json, json!({"redriven": 1}));
    let unknown = json!({"position": Position::of_id(999_999).to_string()});
    server.post("/v1/dead-letters/redrive", &unknown).await.is_problem("NOT_FOUND");
    assert_eq!(server.post_text("/v1/dead-letters/redrive", "").await.json, json!({"redriven": 2}));
    assert_eq!(server.get("/v1/dead-letters").await.json, json!({"items": []}));
}

#[tokio::test]
async fn the_store_is_described_verified_and_swept() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    server.finish(&run).await;
    let info = server.get("/v1/store/info").await.json;
    assert_eq!(info["kind"], "memory");
    assert!(info["schemaVersion"].is_u64() && info["settings"].is_object() && info["sizeBytes"].is_u64());
    let report = server.send(Method::POST, "/v1/store/verify", "", None).await.json;
    assert_eq!((&report["findings"], &report["integrity"]), (&json!([]), &json!([])));
    assert!(report["runs"].as_u64() >= Some(1) && report["events"].as_u64() >= Some(5), "{report}");
    let swept = server.send(Method::POST, "/v1/store/retention", "", None).await.json;
    assert_eq!(swept, json!({"runsRemoved": 0}));
}

#[tokio::test]
async fn what_a_store_cannot_do_is_said_without_details() {
    let server = Server::start().await;
    let backup = server.get("/v1/store/backup").await;
    assert_eq!(backup.status, 501);
    backup.is_problem("UNSUPPORTED");
}

/// An imported run belongs to whoever imported it, whatever its events say.
#[tokio::test]
async fn an_imported_run_belongs_to_its_importer() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let mut request = start(one_step());
    request["approvalRequired"] = json!(true);
    let run = server.send(Method::POST, "/v1/runs", "acme-operator", Some(&request)).await.run_id();
    let path = format!("/v1/runs/{run}");
    let file = server.send(Method::GET, &format!("{path}/export"), "acme-operator", None).await;
    assert_eq!(server.send(Method::DELETE, &path, "acme-admin", None).await.status, 204);
    let imported = server.import_as("globex-admin", &file).await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    let path = format!("/v1/runs/{}", imported.run_id());
    let cancel = json!({"signalId": "c", "type": "CANCEL"});
    for _ in 0..2 {
        assert_eq!(server.send(Method::GET, &path, "acme-viewer", None).await.status, 404);
        let foreign = server.send(Method::POST, &format!("{path}/signals"), "acme-operator", Some(&cancel)).await;
        assert_eq!(foreign.status, 404, "{}", foreign.text);
        // The second round finds the run in memory.
        assert_eq!(server.send(Method::GET, &path, "globex-viewer", None).await.status, 200);
    }
    let signalled = server.send(Method::POST, &format!("{path}/signals"), "globex-operator", Some(&cancel)).await;
    assert_eq!(signalled.status, 200, "{}", signalled.text);
}

/// S1: whether the id in a file is another tenant's run, or nobody's, is answered alike: with a run of one's own.
#[tokio::test]
async fn an_import_says_nothing_about_foreign_runs() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let mut answers = Vec::new();
    for taken in [true, false] {
        let run = server.start_as("acme-operator", endless()).await;
        let path = format!("/v1/runs/{run}");
        let file = server.send(Method::GET, &format!("{path}/export"), "acme-operator", None).await;
        if !taken {
            assert_eq!(server.send(Method::DELETE, &path, "acme-admin", None).await.status, 204);
        }
        let imported = server.import_as("globex-admin", &file).await;
        assert_ne!(imported.run_id(), run);
        let again = server.import_as("globex-admin", &file).await;
        again.is_problem("RUN_EXISTS");
        let shown = server.send(Method::GET, &format!("/v1/runs/{}", imported.run_id()), "globex-viewer", None).await;
        assert_eq!(shown.json["importedBy"], "globex-admin", "{}", shown.text);
        let seen = server.send(Method::GET, &path, "globex-viewer", None).await;
        let detail = again.json["detail"].as_str().unwrap().replace(imported.run_id().as_str(), "ID");
        answers.push((imported.status, again.status, detail, seen.status));
        // Its owner's is as it was.
        let own = server.send(Method::GET, &path, "acme-viewer", None).await;
        assert_eq!(own.status, if taken { 200 } else { 404 });
        assert!(own.json["importedBy"].is_null());
    }
    assert_eq!(answers[0], answers[1]);
    // Who reaches every tenant keeps the id, and is told that it is taken.
    let run = server.start_as("acme-operator", endless()).await;
    let file = server.send(Method::GET, &format!("/v1/runs/{run}/export"), "acme-operator", None).await;
    server.import_as("globex-platform-admin", &file).await.is_problem("RUN_EXISTS");
    assert_eq!(server.send(Method::DELETE, &format!("/v1/runs/{run}"), "acme-admin", None).await.status, 204);
    assert_eq!(server.import_as("globex-platform-admin", &file).await.run_id(), run);
}
