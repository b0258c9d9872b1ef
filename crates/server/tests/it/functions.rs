//! The registry over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Options, Server, keys};

fn push(url: &str) -> Value {
    json!({"reach": {"kind": "push", "url": url}})
}

async fn put(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let answer = server.send(Method::PUT, path, "", Some(body)).await;
    (answer.status.into(), serde_json::from_str(&answer.text).unwrap_or_default())
}

#[tokio::test]
async fn a_function_has_versions_and_aliases() {
    let server = Server::start().await;
    let (status, first) = put(&server, "/v1/functions/f", &push("http://127.0.0.1:1/")).await;
    assert_eq!((status, &first["version"]), (200, &json!(1)));
    assert_eq!(first["spec"]["durable"], true);
    let (_, same) = put(&server, "/v1/functions/f", &push("http://127.0.0.1:1/")).await;
    assert_eq!(same["version"], 1, "the same registration again");
    let (_, second) = put(&server, "/v1/functions/f", &push("http://127.0.0.1:2/")).await;
    assert_eq!(second["version"], 2);
    let (status, alias) = put(&server, "/v1/functions/f/aliases/live", &json!({"version": 1})).await;
    assert_eq!((status, &alias["version"]), (200, &json!(1)));
    assert_eq!(put(&server, "/v1/functions/f/aliases/live", &json!({"version": 9})).await.0, 404);
    let shown: Value = serde_json::from_str(&server.get("/v1/functions/f").await.text).unwrap();
    assert_eq!(shown["latest"]["version"], 2);
    let versions: Vec<_> = shown["versions"].as_array().unwrap().iter().map(|v| v["version"].clone()).collect();
    assert_eq!(versions, [2, 1]);
    assert_eq!(shown["aliases"], json!([{"alias": "live", "version": 1}]));
    let listed: Value = serde_json::from_str(&server.get("/v1/functions").await.text).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.send(Method::DELETE, "/v1/functions/f", "", None).await.status, 204);
    assert_eq!(server.get("/v1/functions/f").await.status, 404);
}

/// What is missing is named: the function, its version or its alias.
#[tokio::test]
async fn what_an_alias_lacks_is_named() {
    let server = Server::start().await;
    let detail = async |method: Method, path: &str, version: Value| {
        let body = (method == Method::PUT).then(|| json!({"version": version}));
        let answer = server.send(method, path, "", body.as_ref()).await;
        let problem: Value = serde_json::from_str(&answer.text).unwrap();
        (u16::from(answer.status), problem["code"].clone(), problem["detail"].as_str().unwrap().to_owned())
    };
    let live = "/v1/functions/f/aliases/live";
    let (status, code, said) = detail(Method::PUT, live, json!(1)).await;
    assert_eq!((status, code, said.as_str()), (404, json!("FUNCTION_NOT_FOUND"), "no function `f` is registered"));
    assert_eq!(put(&server, "/v1/functions/f", &push("http://127.0.0.1:1/")).await.0, 200);
    for version in [0, 9] {
        let (status, code, said) = detail(Method::PUT, live, json!(version)).await;
        let expected = format!("no version {version} of `f` is registered, its newest is 1");
        assert_eq!((status, code, said), (404, json!("FUNCTION_NOT_FOUND"), expected));
    }
    let (status, code, said) = detail(Method::DELETE, live, json!(null)).await;
    assert_eq!((status, code, said.as_str()), (404, json!("FUNCTION_NOT_FOUND"), "`f` has no alias `live`"));
    for bad in ["7", "%24LATEST", "a%20b", &"x".repeat(129)] {
        let (status, code, said) = detail(Method::PUT, &format!("/v1/functions/f/aliases/{bad}"), json!(1)).await;
        assert_eq!((status, code), (422, json!("INVALID_PARAMETER")), "{bad}");
        assert!(said.contains("alias"), "{bad}: {said}");
    }
}

#[tokio::test]
async fn a_wrong_registration_names_its_field() {
    let server = Server::start().await;
    for (spec, pointer) in [
        (json!({}), "/reach"),
        (json!({"reach": {"kind": "push", "url": "ftp://x"}}), "/reach/url"),
        (json!({"reach": {"kind": "pull"}, "executionTimeoutSeconds": 0}), "/executionTimeoutSeconds"),
        (json!({"reach": {"kind": "pull"}, "colour": 1}), "/colour"),
    ] {
        let (status, problem) = put(&server, "/v1/functions/f", &spec).await;
        assert_eq!(status, 422, "{problem}");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{spec}: {problem}");
    }
    assert_eq!(put(&server, "/v1/functions/no%20spaces", &push("http://127.0.0.1:1/")).await.0, 422);
}

/// S4
#[tokio::test]
async fn functions_belong_to_a_tenant() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let spec = push("http://127.0.0.1:1/");
    let send = |method: Method, key: &'static str, body: Option<Value>| {
        let server = &server;
        async move { server.send(method, "/v1/functions/f", key, body.as_ref()).await.status }
    };
    assert_eq!(send(Method::PUT, "acme-operator", Some(spec.clone())).await, 403);
    assert_eq!(send(Method::PUT, "acme-admin", Some(spec)).await, 200);
    assert_eq!(send(Method::GET, "acme-viewer", None).await, 200);
    assert_eq!(send(Method::GET, "globex-viewer", None).await, 404);
    assert_eq!(send(Method::DELETE, "globex-admin", None).await, 404);
}
