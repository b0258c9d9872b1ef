//! Every answer of every test is one that the OpenAPI document describes: its status, its media type, and each of its members.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Answer;

/// The schemas as they are published let answers have more members than they name, so that clients live with later versions. Here
/// each member must be named.
static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
    let mut schemas = servo_server::openapi::document()["components"]["schemas"].clone();
    for (name, schema) in schemas.as_object_mut().unwrap() {
        // What is published under a GTS id says itself what it is open for.
        if !name.contains('.') {
            close(schema);
        }
    }
    schemas
});

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) if members.contains_key("allOf") => {}
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

fn validator(schema: &Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let build = || {
        let mut whole = schema.clone();
        close(&mut whole);
        whole["components"] = json!({"schemas": *SCHEMAS});
        Arc::new(jsonschema::draft202012::new(&whole).unwrap_or_else(|error| panic!("{schema}: {error}")))
    };
    validators.entry(schema.to_string()).or_insert_with(build).clone()
}

/// Whether a path is one of a template, such as `/v1/runs/{id}`; how many of its parts are fixed.
fn matched(template: &str, path: &str) -> Option<usize> {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let is_one = |(part, given): (&&str, &&str)| match part.split_once('}') {
        Some(("", _)) | None => part == given,
        Some((_, action)) => given.len() > action.len() && given.ends_with(action),
    };
    let fits = template.len() == path.len() && template.iter().zip(&path).all(is_one);
    let has_action = path.last().is_some_and(|last| last.contains(':'));
    let names_action = template.last().is_some_and(|last| last.contains(':'));
    let fixed = template.iter().filter(|part| !part.contains('{')).count() + usize::from(has_action && names_action);
    fits.then_some(fixed)
}

#[track_caller]
pub(crate) fn check(answer: &Answer, method: &Method, path: &str) {
    let document = servo_server::openapi::document();
    let paths = document["paths"].as_object().unwrap().iter();
    let found =
        paths.filter_map(|(template, methods)| Some((matched(template, path)?, methods))).max_by_key(|row| row.0);
    // What is not there, and Lambda's API, which AWS describes.
    let Some(operation) = found.and_then(|(_, methods)| methods.get(method.as_str().to_lowercase())) else { return };
    let status = answer.status.as_u16();
    let response = &operation["responses"][status.to_string()];
    let response = match response["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => response,
    };
    assert!(response.is_object(), "{method} {path} answers {status}, which is not described: {}", answer.text);
    let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let contents = response["content"].as_object();
    let content = contents.and_then(|contents| {
        let plain = |kind: &str| kind.split(';').next().unwrap_or_default().to_owned();
        contents.iter().find(|(described, _)| plain(described) == plain(kind)).map(|(_, content)| content)
    });
    let Some(content) = content else {
        assert!(contents.is_none() && answer.text.is_empty(), "{method} {path} answers {kind}, which is not described");
        return;
    };
    if !kind.contains("json") {
        return;
    }
    let faults: Vec<_> = validator(&content["schema"])
        .iter_errors(&answer.json)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{method} {path} is not as described: {faults:#?}\n{}", answer.text);
}

#[test]
fn templates_match_paths() {
    assert_eq!(matched("/v1/runs/{id}", "/v1/runs/inv_1"), Some(3));
    assert_eq!(matched("/v1/runs/import", "/v1/runs/import"), Some(4));
    assert_eq!(matched("/v1/runs/{id}", "/v1/runs"), None);
    assert_eq!(matched("/a/{id}:control", "/a/inv_1:signal"), None);
    assert_eq!(matched("/a/{id}:control", "/a/inv_1:control"), Some(3));
}
