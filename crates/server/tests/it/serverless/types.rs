//! The published types, as they are served.

use serde_json::Value;

use super::support::{Api, refused};

/// SR-001, SR-005, SR-006: every schema of `spec/gts` is there, as it is written.
#[tokio::test]
async fn every_schema_is_served() {
    let api = Api::start().await;
    let list = api.get("/types").await.json;
    let listed: Vec<&str> = list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/gts/schemas");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let id = path.file_stem().unwrap().to_str().unwrap();
        assert!(listed.contains(&id), "{id}");
        let answer = api.get(&format!("/types/{id}")).await;
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((answer.status.as_u16(), &answer.json), (200, &written), "{id}");
        assert_eq!(answer.json["$id"], format!("gts://{id}"));
        files += 1;
    }
    assert!(files > 20 && listed.len() == files);
    refused(&api.get("/types/gts.no.such.type.v1~").await, 404, "not_found");
}
