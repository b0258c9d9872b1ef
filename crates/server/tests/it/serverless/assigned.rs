//! S3, SR-353: what an entrypoint is, and whose, is not changed by what a body says; members that nobody knows change nothing.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition_of, paths, refused};
use crate::harness::{Answer, Options, keys};

struct Draft {
    api: Api,
    id: String,
}

impl Draft {
    /// A draft of acme's, beside another one and one of globex's.
    async fn new() -> Self {
        let options = Options { auth: keys(), ..Options::default() };
        let api = Api::with(options, &["acme-developer", "globex-developer"]).await;
        let mut id = String::new();
        for (tenant, address) in [("acme", WORKFLOW), ("globex", FUNCTION), ("acme", FUNCTION)] {
            let key = format!("{tenant}-developer");
            let made = api.send(Method::POST, "/entrypoints", &key, Some(&definition_of(tenant, address))).await;
            assert_eq!(made.status, 201, "{}", made.text);
            id = made.json["id"].as_str().unwrap().to_owned();
        }
        Self { api, id }
    }

    async fn put(&self, key: &str, document: &Value) -> Answer {
        self.api.send(Method::PUT, &format!("/entrypoints/{}", self.id), key, Some(document)).await
    }

    /// What each tenant has.
    async fn all(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for key in ["acme-developer", "globex-developer"] {
            all.push(self.api.send(Method::GET, "/entrypoints", key, None).await.json["items"].clone());
        }
        all
    }
}

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut document = definition_of("acme", FUNCTION);
    change(&mut document);
    document
}

fn owner(owner_type: &str, id: &str, tenant: &str) -> Value {
    changed(|document| document["owner"] = json!({"owner_type": owner_type, "id": id, "tenant_id": tenant}))
}

/// Another address, another tenant, another owner: refused, and nothing has changed.
async fn a_draft_stays_what_it_is_and_whose() {
    let draft = Draft::new().await;
    let before = draft.all().await;
    let fresh = FUNCTION.replace("echo.v1", "echo.v2");
    let rows = [
        (changed(|document| document["entrypoint_id"] = fresh.clone().into()), 422, "validation"),
        // Taken by another draft of the tenant.
        (changed(|document| document["entrypoint_id"] = WORKFLOW.into()), 422, "validation"),
        (changed(|document| document["tenant_id"] = "globex".into()), 403, "forbidden"),
        (owner("tenant", "globex", "globex"), 403, "forbidden"),
        (owner("tenant", "acme", "globex"), 403, "forbidden"),
        (owner("user", "somebody", "acme"), 403, "forbidden"),
        (owner("user", "acme-developer", "globex"), 403, "forbidden"),
        (owner("system", "platform", "acme"), 403, "forbidden"),
    ];
    for (document, status, name) in rows {
        refused(&draft.put("acme-developer", &document).await, status, name);
        assert_eq!(draft.all().await, before, "{document}");
    }
    // Those who run the platform register for others, and move nothing either.
    for document in [owner("tenant", "globex", "globex"), owner("system", "platform", "acme")] {
        let answer = draft.put("acme-platform-admin", &document).await;
        refused(&answer, 422, "validation");
        assert_eq!(paths(&answer), ["$.owner.tenant_id"], "{}", answer.text);
        assert_eq!(draft.all().await, before, "{document}");
    }
}

/// What the registry says itself is not taken from a body.
async fn what_the_registry_manages_is_not_assigned() {
    let draft = Draft::new().await;
    let path = format!("/entrypoints/{}", draft.id);
    let before = draft.api.send(Method::GET, &path, "acme-developer", None).await.json;
    let document = changed(|document| {
        document["id"] = "ep_00000000000000000000000000000000".into();
        document["status"] = "active".into();
        document["created_at"] = "2001-01-01T00:00:00.000Z".into();
        document["updated_at"] = "2001-01-01T00:00:00.000Z".into();
    });
    let answer = draft.put("acme-developer", &document).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for name in ["id", "status", "created_at", "tenant_id", "owner", "entrypoint_id"] {
        assert_eq!(answer.json[name], before[name], "{name}");
    }
    assert!(answer.json["updated_at"].as_str() >= before["updated_at"].as_str());
    let read = draft.api.send(Method::GET, &path, "acme-developer", None).await.json;
    assert_eq!(read, answer.json);
    refused(
        &draft.api.send(Method::POST, "/invocations", "acme-operator", Some(&json!({"entrypoint_id": FUNCTION}))).await,
        409,
        "not_active",
    );
}

/// SR-371, SR-385: members that nobody knows, at the top of each body of the serverless API and of `/v1`. A definition's published
/// type is open for them: there they are kept as they were written, and mean nothing.
async fn unknown_members_are_refused_or_mean_nothing() {
    let draft = Draft::new().await;
    let before = draft.all().await;
    let api = &draft.api;
    let run = api.server.start_as("acme-operator", crate::harness::endless()).await;
    let serverless = |path: &str| format!("{PREFIX}{path}");
    let id = &draft.id;
    let rows = [
        (Method::POST, serverless(&format!("/entrypoints/{id}:status")), json!({"action": "activate"})),
        (Method::POST, serverless("/invocations"), json!({"entrypoint_id": FUNCTION})),
        (Method::POST, serverless("/invocations:bulk"), json!({"action": "cancel", "filter": "status eq 'failed'"})),
        (Method::POST, serverless(&format!("/invocations/{run}:control")), json!({"action": "cancel"})),
        (Method::POST, serverless(&format!("/invocations/{run}:signal")), json!({"signal_id": "s", "name": "n"})),
        (Method::POST, "/v1/runs".to_owned(), crate::harness::start(crate::harness::one_step())),
        (Method::POST, format!("/v1/runs/{run}/signals"), json!({"signalId": "s", "type": "CANCEL"})),
        (Method::POST, format!("/v1/runs/{run}/terminate"), json!({"reason": "r"})),
        (Method::PUT, "/v1/functions/f".to_owned(), json!({"reach": {"kind": "inProcess"}})),
        (Method::PUT, "/v1/functions/plain/aliases/a".to_owned(), json!({"version": 1})),
        (Method::POST, "/v1/keys".to_owned(), json!({"name": "n", "roles": ["viewer"]})),
    ];
    for (method, path, body) in rows {
        for name in ["is_admin", "tenantId2", "__proto__"] {
            let mut with = body.clone();
            with[name] = json!("globex");
            let answer = api.server.send(method.clone(), &path, "acme-admin", Some(&with)).await;
            assert!(matches!(answer.status.as_u16(), 400 | 422), "{method} {path} took {name}: {}", answer.text);
            assert!(answer.text.contains(name), "{method} {path} does not say which: {}", answer.text);
        }
    }
    assert_eq!(draft.all().await, before);
    let seen = api.server.send(Method::GET, &format!("/v1/runs/{run}"), "acme-viewer", None).await;
    assert!(!matches!(seen.json["status"].as_str(), Some("CANCELLED" | "FAILED")), "{}", seen.text);
    let own = serverless(&format!("/entrypoints/{id}"));
    let first = api.server.send(Method::GET, &own, "acme-admin", None).await.json;
    let with = changed(|document| document["is_admin"] = json!({"tenant_id": "globex", "status": "active"}));
    let mut told = draft.put("acme-developer", &with).await.json;
    assert_eq!(told["is_admin"], with["is_admin"], "kept as it was written");
    told.as_object_mut().unwrap().remove("is_admin");
    told["updated_at"] = first["updated_at"].clone();
    assert_eq!(told, first, "and it means nothing");
}

crate::backend::on_every_store! {
    a_draft_stays_what_it_is_and_whose,
    what_the_registry_manages_is_not_assigned,
    unknown_members_are_refused_or_mean_nothing,
}
