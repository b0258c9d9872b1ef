//! The whole way of an invocation.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, WORKFLOW, definition, refused};

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

/// SR-326, SR-327, SR-328, SR-345, SR-367, SR-376, SR-380, SR-384, SR-391: from the registration to the timeline.
async fn an_entrypoint_lives() {
    let api = Api::start().await;
    let function = api.activate(&definition(FUNCTION)).await;
    api.activate(&definition(WORKFLOW)).await;
    refused(&api.post("/entrypoints", &definition(FUNCTION)).await, 409, "conflict");
    let request = json!({"entrypoint_id": FUNCTION, "mode": "sync", "params": {"amount": 1}});
    let key = [("idempotency-key", "k")];
    let first = api.invoke(&request, &key).await;
    assert_eq!((first.status.as_u16(), &first.json["record"]["status"]), (201, &json!("succeeded")), "{}", first.text);
    assert_eq!(api.invoke(&request, &key).await.status, 200);
    let mut other = request.clone();
    other["params"]["amount"] = json!(2);
    refused(&api.invoke(&other, &key).await, 422, "validation");

    let hanging = api.begin(WORKFLOW, &json!({"do": "hang"})).await;
    api.until(&hanging, "running").await;
    assert_eq!(api.control(&hanging, "suspend").await.status, 200);
    api.until(&hanging, "suspended").await;
    let bulk = json!({"action": "cancel", "filter": "status eq 'suspended'"});
    assert_eq!(ids(&api.post("/invocations:bulk", &bulk).await.json), [hanging.as_str()]);
    api.until(&hanging, "canceled").await;
    let failed = api.begin(FUNCTION, &json!({"do": "fail"})).await;
    api.until(&failed, "failed").await;
    let replayed = api.control(&failed, "replay").await;
    assert_eq!(replayed.status, 201, "{}", replayed.text);
    let replayed = replayed.json["id"].as_str().unwrap();
    api.until(replayed, "failed").await;

    let page = api.get("/invocations?limit=3").await.json;
    assert_eq!(ids(&page), [replayed, &failed, &hanging]);
    let next = page["page_info"]["next_cursor"].as_str().unwrap();
    let last = api.get(&format!("/invocations?limit=3&cursor={next}")).await.json;
    assert_eq!(ids(&last), [first.json["record"]["id"].as_str().unwrap()]);
    let back = last["page_info"]["prev_cursor"].as_str().unwrap();
    assert_eq!(api.get(&format!("/invocations?limit=3&cursor={back}")).await.json["items"], page["items"]);
    let found = api.get("/invocations?%24filter=status%20eq%20%27failed%27%20or%20mode%20eq%20%27sync%27").await.json;
    assert_eq!(ids(&found).len(), 3, "{found}");
    let timeline = api.get(&format!("/invocations/{hanging}/timeline")).await.json;
    let kinds: Vec<_> = timeline["items"].as_array().unwrap().iter().map(|event| event["event_type"].clone()).collect();
    assert!(kinds.contains(&json!("suspended")) && kinds.last() == Some(&json!("canceled")), "{timeline}");

    assert_eq!(api.act(&function, "disable").await.status, 200);
    refused(&api.control(&failed, "retry").await, 409, "not_active");
    assert_eq!(api.send(Method::DELETE, &format!("/entrypoints/{function}"), "", None).await.status, 204);
    assert_eq!(api.get(&format!("/entrypoints/{function}")).await.json["status"], "archived");
}

crate::backend::on_every_store! {
    an_entrypoint_lives,
}
