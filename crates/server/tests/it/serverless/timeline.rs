//! Timelines: by pages and live.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition, refused};
use crate::harness::{Frame, frames};

fn kinds(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|event| event["event_type"].as_str().unwrap()).collect()
}

/// SR-184, SR-384: events in order, in the list envelope, page by page.
async fn a_timeline_has_pages() {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    let id = api.begin(FUNCTION, &json!({})).await;
    api.until(&id, "succeeded").await;
    let whole = api.get(&format!("/invocations/{id}/timeline")).await.json;
    let all = kinds(&whole);
    assert_eq!((all.first(), all.last()), (Some(&"started"), Some(&"succeeded")), "{whole}");
    let mut times: Vec<&str> =
        whole["items"].as_array().unwrap().iter().map(|event| event["at"].as_str().unwrap()).collect();
    let told = times.clone();
    times.sort_unstable();
    assert_eq!(times, told);
    let first = api.get(&format!("/invocations/{id}/timeline?limit=1")).await.json;
    assert_eq!((kinds(&first), &first["page_info"]["has_more"]), (vec!["started"], &json!(true)));
    let cursor = first["page_info"]["next_cursor"].as_str().unwrap();
    let next = api.get(&format!("/invocations/{id}/timeline?limit=1&cursor={cursor}")).await.json;
    assert_eq!(kinds(&next), all[1..2]);
    refused(&api.get("/invocations/inv_missing/timeline").await, 404, "not_found");
    refused(&api.get(&format!("/invocations/{id}/timeline?cursor=x")).await, 400, "bad_request");
    refused(&api.get(&format!("/invocations/{id}/timeline?%24filter=x")).await, 400, "bad_request");
}

async fn follow(api: &Api, id: &str, last: Option<&str>) -> Vec<Frame> {
    let path = format!("{PREFIX}/invocations/{id}/timeline");
    let mut request = api.server.request(Method::GET, &path).header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = request.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    frames(&response.text().await.unwrap())
}

/// Live: what is there, what comes, and the end; a reader that comes back gets the rest only.
async fn a_timeline_is_followed_to_the_end() {
    let api = Api::start().await;
    api.activate(&definition(WORKFLOW)).await;
    let id = api.begin(WORKFLOW, &json!({"do": "hang"})).await;
    api.until(&id, "running").await;
    let (all, _) = tokio::join!(follow(&api, &id, None), api.control(&id, "cancel"));
    let names: Vec<&str> = all.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"started"), Some(&"end")), "{names:?}");
    assert!(names.contains(&"canceled"), "{names:?}");
    assert_eq!(all.last().unwrap().data, json!({"status": "canceled"}));
    let rest = follow(&api, &id, Some("1")).await;
    assert_eq!(rest.first().map(|frame| frame.id.as_str()), Some("2"), "{rest:?}");
    assert_eq!(rest.len() + 1, all.len());
    let request = api.server.request(Method::GET, &format!("{PREFIX}/invocations/inv_missing/timeline"));
    let missing = crate::harness::Answer::of(request.header("accept", "text/event-stream")).await;
    refused(&missing, 404, "not_found");
}

crate::backend::on_every_store! {
    a_timeline_has_pages,
    a_timeline_is_followed_to_the_end,
}
