//! What undoes a run was asked for by nobody, and is in the audit log all the same.

use serde_json::{Value, json};

use super::support::{Api, FUNCTION, WORKFLOW, definition};
use crate::harness::wait_for;

/// The entries of one action.
async fn entries(api: &Api, action: &str) -> Vec<Value> {
    let answer = api.server.get(&format!("/v1/audit?action={action}")).await;
    answer.json["items"].as_array().unwrap().clone()
}

/// The run that undoes another one acts as the system, under the identity that it undoes for.
#[tokio::test]
async fn what_undoes_a_run_says_for_whom() {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    let mut flow = definition(WORKFLOW);
    flow["traits"]["workflow"]["compensation"]["on_failure"] = json!(FUNCTION);
    api.activate(&flow).await;
    let start = json!({"entrypoint_id": WORKFLOW, "params": {"do": "fail"}});
    let answer = api.invoke(&start, &[("x-correlation-id", "order-7")]).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let id = answer.json["record"]["id"].as_str().unwrap().to_owned();
    api.until(&id, "compensated").await;
    let undone = entries(&api, "invocation.compensate").await;
    assert_eq!(undone.len(), 1, "{undone:?}");
    let asked = wait_for("the entry of the start", async || entries(&api, "invocation.start").await.pop()).await;
    let entry = &undone[0];
    let actor = format!("system:compensation:{}", asked["actor"].as_str().unwrap());
    assert_eq!(entry["actor"], actor.as_str(), "{entry}");
    assert_eq!((&entry["outcome"], &entry["correlationId"]), (&json!("allowed"), &json!("order-7")), "{entry}");
    assert_eq!(entry["tenantId"], asked["tenantId"], "{entry}");
    let handler = api.get(&format!("/invocations/{}", entry["objectId"].as_str().unwrap())).await;
    assert_eq!(handler.json["entrypoint_id"], FUNCTION, "{}", handler.text);
    assert_ne!(entry["objectId"], id.as_str());
}
