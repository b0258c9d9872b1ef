//! Keys of the store: made, used, ended, and never shown again.

use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use servo_model::{KeyId, Role, TenantId, Timestamp};
use servo_runtime::{Clock as _, SystemClock};
use servo_server::auth::{Auth, Key};
use servo_server::identity::{DEV_KEY_NAME, NewKey, StoredKeys};
use servo_store::Scope;
use servo_store::identity::KeyRow;
use sha2::{Digest as _, Sha256};

use crate::harness::{Answer, Options, ROLES, Server, endless, keys, start};

async fn server() -> Server {
    Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await
}

/// Id and secret.
async fn create(server: &Server, by: &str, body: &Value) -> (String, String) {
    let answer = server.send(Method::POST, "/v1/keys", by, Some(body)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let text = |name: &str| answer.json[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

async fn status(server: &Server, key: &str) -> u16 {
    server.send(Method::GET, "/v1/runs", key, None).await.status.as_u16()
}

/// All that a caller without good credentials may learn.
fn essence(answer: &Answer) -> Value {
    let mut json = answer.json.clone();
    json.as_object_mut().unwrap().remove("requestId");
    json
}

/// The key that `servo dev` leaves beside its data opens nothing on a server that is no `servo dev`, or that others can reach.
#[tokio::test]
async fn the_key_of_a_development_server_works_there_only() {
    for (dev, loopback, expected) in [(true, true, 200), (false, true, 401), (true, false, 401), (false, false, 401)] {
        for auth in [keys(), Auth::Development] {
            let server = Server::with(Options { auth, loopback, dev, ..Options::default() }).await;
            let engine = server.runtime.engine();
            let (stored, _) = StoredKeys::new(engine.store().clone()).await.unwrap();
            let new = |name: &str| NewKey {
                tenant: TenantId::default_tenant(),
                name: name.to_owned(),
                roles: vec![Role::Admin],
                created_by: "dev".to_owned(),
                expires_at: None,
                access: false,
            };
            let now = SystemClock.now();
            let (_, own) = stored.create(engine.ids(), now, new(DEV_KEY_NAME)).await.unwrap();
            let (_, other) = stored.create(engine.ids(), now, new("mine")).await.unwrap();
            assert_eq!(status(&server, &own).await, expected, "dev {dev}, loopback {loopback}");
            assert_eq!(status(&server, &other).await, 200, "any other key works everywhere");
        }
    }
    let named = json!({"name": DEV_KEY_NAME, "roles": ["viewer"]});
    let answer = server().await.send(Method::POST, "/v1/keys", "acme-admin", Some(&named)).await;
    answer.names("/name");
}

#[tokio::test]
async fn a_key_works_until_it_is_revoked() {
    let server = server().await;
    let (id, secret) = create(&server, "acme-admin", &json!({"name": "ci", "roles": ["operator"]})).await;
    assert!(secret.starts_with("svo_") && secret.len() == 50, "its form tells what it is");
    assert_eq!(status(&server, &secret).await, 200);
    // What is done with it is done by it, in its tenant.
    let run = server.start_as(&secret, endless()).await;
    let row = server.runtime.engine().store().get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(row.tenant.as_str(), "acme");
    let events = server.send(Method::GET, &format!("/v1/runs/{run}/events"), "acme-viewer", None).await;
    assert!(events.text.contains(&format!("\"triggeredBy\":\"{id}\"")), "{}", events.text);
    assert_eq!(server.send(Method::GET, "/v1/store/info", &secret, None).await.status, 403, "no more than its role");
    let list = server.send(Method::GET, "/v1/keys", "acme-admin", None).await;
    let item = &list.json["items"][0];
    assert_eq!((item["name"].as_str(), item["status"].as_str()), (Some("ci"), Some("active")));
    assert_eq!(item["prefix"], secret[..8]);
    assert_eq!(item["createdBy"], "acme-admin");

    let path = format!("/v1/keys/{id}");
    let revoked = server.send(Method::DELETE, &path, "acme-admin", None).await;
    assert_eq!((revoked.status.as_u16(), revoked.json["status"].as_str()), (200, Some("revoked")));
    assert_eq!(status(&server, &secret).await, 401, "at once");
    let again = server.send(Method::DELETE, &path, "acme-admin", None).await;
    assert_eq!(again.json["revokedAt"], revoked.json["revokedAt"]);
}

/// A revoked, an expired, a misspelt and an invented key are answered alike.
#[tokio::test]
async fn what_is_wrong_with_a_key_is_not_said() {
    let server = server().await;
    let body = json!({"name": "b", "roles": ["viewer"], "expiresInSeconds": 3600});
    let (id, expired) = create(&server, "acme-admin", &body).await;
    // Its hour is over.
    let store = server.runtime.engine().store();
    let id = KeyId::parse(&id).unwrap();
    let row = store.get_key(&Scope::System, &id).await.unwrap().unwrap();
    store.trim_keys(Timestamp::from_millis(i64::MAX), 10).await.unwrap();
    store.put_key(KeyRow { expires_at: Some(row.created_at), ..row }).await.unwrap();
    let (other, revoked) = create(&server, "acme-admin", &json!({"name": "a", "roles": ["viewer"]})).await;
    assert_eq!(status(&server, &revoked).await, 200);
    server.send(Method::DELETE, &format!("/v1/keys/{other}"), "acme-admin", None).await;
    let typo = format!("{}x", &expired[..expired.len() - 1]);
    let invented = "svo_0000000000000000000000000000000000000000000000";
    let mut answers = Vec::new();
    for key in [revoked.as_str(), &expired, &typo, invented, "acme", &expired[..8], id.as_str()] {
        let answer = server.send(Method::GET, "/v1/runs", key, None).await;
        assert_eq!(answer.status, 401, "{key}: {}", answer.text);
        assert!(!answer.text.contains("svo_"), "{}", answer.text);
        answers.push(essence(&answer));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
}

/// Nobody gives or takes more than it has, and only inside its tenant.
#[tokio::test]
async fn a_key_has_no_more_than_its_maker() {
    let server = server().await;
    for (maker, level) in [("acme-admin", 3), ("acme-platform-admin", 4)] {
        for (index, (_, role)) in ROLES.iter().enumerate() {
            let body = json!({"name": "k", "roles": [role]});
            let answer = server.send(Method::POST, "/v1/keys", maker, Some(&body)).await;
            assert_eq!(answer.status, if index <= level { 201 } else { 403 }, "{maker} {role}: {}", answer.text);
            let mixed = json!({"name": "k", "roles": ["viewer", role]});
            let answer = server.send(Method::POST, "/v1/keys", maker, Some(&mixed)).await;
            assert_eq!(answer.status, if index <= level { 201 } else { 403 }, "{maker} viewer and {role}");
        }
    }
    let foreign = json!({"name": "k", "roles": ["viewer"], "tenantId": "globex"});
    assert_eq!(server.send(Method::POST, "/v1/keys", "acme-admin", Some(&foreign)).await.status, 403);
    let (id, secret) = create(&server, "acme-platform-admin", &foreign).await;
    assert_eq!(status(&server, &secret).await, 200);
    let listed = server.send(Method::GET, "/v1/keys", "globex-admin", None).await;
    assert_eq!(listed.json["items"][0]["id"], id.as_str());
    // A foreign key does not exist, except for those who run the platform.
    let unknown = format!("/v1/keys/key_{}", "0".repeat(32));
    let mine = server.send(Method::DELETE, &format!("/v1/keys/{id}"), "acme-admin", None).await;
    mine.is_problem("KEY_NOT_FOUND");
    let none = server.send(Method::DELETE, &unknown, "acme-admin", None).await;
    let without_path = |answer: &Answer| {
        let mut json = essence(answer);
        json.as_object_mut().unwrap().remove("instance");
        json
    };
    assert_eq!(without_path(&mine), without_path(&none));
    assert_eq!(status(&server, &secret).await, 200, "and is left alone");
    assert_eq!(server.send(Method::GET, "/v1/keys?tenantId=globex", "acme-admin", None).await.status, 403);
    let seen = server.send(Method::GET, "/v1/keys?tenantId=globex", "acme-platform-admin", None).await;
    assert_eq!(seen.json["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.send(Method::DELETE, &format!("/v1/keys/{id}"), "acme-platform-admin", None).await.status, 200);
    // An admin does not take away what is above it.
    let (above, secret) =
        create(&server, "acme-platform-admin", &json!({"name": "root", "roles": ["platform-admin"]})).await;
    assert_eq!(server.send(Method::DELETE, &format!("/v1/keys/{above}"), "acme-admin", None).await.status, 403);
    assert_eq!(status(&server, &secret).await, 200);
}

#[tokio::test]
async fn a_request_for_a_key_is_checked() {
    let server = server().await;
    for (body, pointer) in [
        (json!({"name": "", "roles": ["viewer"]}), "/name"),
        (json!({"name": " a", "roles": ["viewer"]}), "/name"),
        (json!({"name": "a\u{7}", "roles": ["viewer"]}), "/name"),
        (json!({"name": "n".repeat(129), "roles": ["viewer"]}), "/name"),
        (json!({"name": "a", "roles": []}), "/roles"),
        (json!({"name": "a", "roles": ["root"]}), "/roles/0"),
        (json!({"name": "a", "roles": ["viewer"], "tenantId": "_system"}), "/tenantId"),
        (json!({"name": "a", "roles": ["viewer"], "expiresInSeconds": 0}), "/expiresInSeconds"),
        (json!({"name": "a", "roles": ["viewer"], "digest": "00"}), "/digest"),
        (json!({"name": "a", "roles": ["viewer"], "createdBy": "root"}), "/createdBy"),
    ] {
        let answer = server.send(Method::POST, "/v1/keys", "acme-platform-admin", Some(&body)).await;
        answer.is_problem("SCHEMA_VALIDATION_FAILED");
        answer.names(pointer);
    }
    server.send(Method::DELETE, "/v1/keys/all", "acme-admin", None).await.is_problem("INVALID_PARAMETER");
    let list = server.send(Method::GET, "/v1/keys", "acme-admin", None).await;
    assert_eq!(list.json["items"], json!([]));
}

#[tokio::test]
async fn keys_are_listed_page_by_page() {
    let server = server().await;
    for name in ["1", "2", "3"] {
        create(&server, "acme-admin", &json!({"name": name, "roles": ["viewer"]})).await;
    }
    let first = server.send(Method::GET, "/v1/keys?limit=2", "acme-admin", None).await.json;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let after = first["after"].as_str().unwrap();
    let second = server.send(Method::GET, &format!("/v1/keys?limit=2&after={after}"), "acme-admin", None).await.json;
    assert_eq!(second["items"].as_array().unwrap().len(), 1);
    assert!(second["after"].is_null());
}

fn mac(key: &[u8], data: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(data.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A signed GET of a path without a query.
fn signed(server: &Server, path: &str, id: &str, secret: &str) -> reqwest::RequestBuilder {
    let iso = SystemClock.now().to_string();
    let time = format!("{}Z", iso[..19].replace(['-', ':'], ""));
    let (date, host) = (&time[..8], server.address.to_string());
    let empty = hex(&Sha256::digest(b""));
    let request = format!("GET\n{path}\n\nhost:{host}\nx-amz-date:{time}\n\nhost;x-amz-date\n{empty}");
    let scope = format!("{date}/us-east-1/lambda/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request.as_bytes())));
    let key = ["us-east-1", "lambda", "aws4_request"]
        .iter()
        .fold(mac(format!("AWS4{secret}").as_bytes(), date), |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &text));
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders=host;x-amz-date, Signature={signature}");
    server.request(Method::GET, path).header("x-amz-date", time).header("authorization", authorization)
}

#[tokio::test]
async fn an_access_key_signs_calls_of_the_lambda_api() {
    let server = server().await;
    let body = json!({"name": "aws", "roles": ["viewer"], "kind": "access"});
    let answer = server.send(Method::POST, "/v1/keys", "acme-admin", Some(&body)).await;
    let text = |name: &str| answer.json[name].as_str().unwrap().to_owned();
    let (key, id, secret) = (text("id"), text("prefix"), text("secret"));
    let path = "/2025-12-01/functions/none/durable-executions";
    let ask = async |id: &str, secret: &str| signed(&server, path, id, secret).send().await.unwrap();
    // There is no such function, which only somebody who is let in is told.
    assert_eq!(ask(&id, &secret).await.status(), 404);
    assert_eq!(ask(&id, "another").await.status(), 403);
    assert_eq!(ask("SVOAAAAAAAAAAAAAAAAA", &secret).await.status(), 403);
    assert_eq!(status(&server, &secret).await, 401, "it is no bearer token");
    assert_eq!(status(&server, &id).await, 401);
    server.send(Method::DELETE, &format!("/v1/keys/{key}"), "acme-admin", None).await;
    assert_eq!(ask(&id, &secret).await.status(), 403);
}

/// A development server needs no key, and takes one of its own for what it is.
#[tokio::test]
async fn in_development_a_key_is_optional() {
    let server = Server::start().await;
    let (id, viewer) = create(&server, "", &json!({"name": "v", "roles": ["viewer"]})).await;
    assert_eq!(
        (status(&server, "").await, status(&server, "whatever").await, status(&server, &viewer).await),
        (200, 200, 200)
    );
    let body = start(endless());
    assert_eq!(server.send(Method::POST, "/v1/runs", &viewer, Some(&body)).await.status, 403);
    server.send(Method::DELETE, &format!("/v1/keys/{id}"), "", None).await;
    assert_eq!(status(&server, &viewer).await, 401);
}

/// A digest does not say whether its key was thought up. Its bearer shows the key, and is refused with a reason; whoever has no key of
/// the configuration learns nothing.
#[tokio::test]
async fn a_configured_key_that_somebody_thought_up_is_refused() {
    let made = servo_wire::key::api_key([7; servo_wire::key::SECRET_BYTES]);
    let key = |name: &str, text: &str, self_made: bool| Key {
        name: name.to_owned(),
        tenant: TenantId::parse("acme").unwrap(),
        roles: vec![Role::Viewer],
        sha256: servo_canon::Digest::of(text.as_bytes()),
        self_made,
    };
    let svo = format!("svo_{}", "a".repeat(46));
    let keys = vec![
        key("word", "mysecret", false),
        key("made", &made, false),
        key("own", "from the vault", true),
        key("posing", &svo, false),
    ];
    let auth = Auth::Keys { keys, access_keys: Vec::new() };
    let server = Server::with(Options { auth, loopback: false, ..Options::default() }).await;
    for (text, expected) in
        [(made.as_str(), 200), ("from the vault", 200), ("mysecret", 401), (&svo, 401), ("guess", 401)]
    {
        assert_eq!(status(&server, text).await, expected, "{text}");
    }
    let said = async |key: &str| server.send(Method::GET, "/v1/runs", key, None).await;
    let refused = said("mysecret").await;
    refused.is_problem("UNAUTHENTICATED");
    assert!(refused.text.contains("servo keys generate"), "{}", refused.text);
    assert!(!said("guess").await.text.contains("servo keys generate"));
}
