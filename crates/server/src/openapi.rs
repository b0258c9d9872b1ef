//! The API described for programs: OpenAPI 3.1, made from a table of operations and from the published types.
//!
//! Lambda's API is not in it: AWS has described that. A test compares the table with the router, so that neither has what the other
//! lacks.

mod bodies;
mod operations;
mod parameters;
mod schemas;
mod v1;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use operations::{OPERATIONS, Operation};

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The description as it is served at `/openapi.json`.
pub fn document() -> &'static Value {
    &DOCUMENT
}

fn build() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| Value::Object(Map::new()));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(operation.method.to_lowercase(), describe(operation));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Servo",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Functions, durable workflows and runs of plans on one event log.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "security": [{"key": []}],
        "tags": [
            {"name": "entrypoints", "description": "The registry of functions and workflows."},
            {"name": "invocations", "description": "Runs of entrypoints."},
            {"name": "types", "description": "The published JSON Schemas."},
            {"name": "runs", "description": "Runs of plans and functions."},
            {"name": "functions", "description": "Handlers of the Lambda API."},
            {"name": "identity", "description": "Keys and the audit log."},
            {"name": "platform", "description": "The store, the runtime contract and health."},
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas::all(),
            "responses": refusals(),
        },
    })
}

fn refusals() -> Map<String, Value> {
    bodies::refusals().into_iter().chain(v1::refusals()).collect()
}

fn describe(operation: &Operation) -> Value {
    let mut told = Map::new();
    told.insert("operationId".to_owned(), operation.id.into());
    told.insert("summary".to_owned(), operation.summary.into());
    told.insert("tags".to_owned(), json!([operation.tag]));
    match operation.role {
        Some(role) => told.insert("description".to_owned(), format!("Needs the role {role}.").into()),
        None => told.insert("security".to_owned(), json!([])),
    };
    // Open to this machine on a server that only this machine reaches.
    if operation.id == "getMetrics" {
        told.insert("security".to_owned(), json!([{"key": []}, {}]));
    }
    let mut parameters = parameters::of(operation);
    if !operation.is_serverless() {
        parameters.extend(v1::parameters(operation));
    }
    if !parameters.is_empty() {
        told.insert("parameters".to_owned(), parameters.into());
    }
    let (request, responses) = match operation.is_serverless() {
        true => (bodies::request(operation), bodies::responses(operation)),
        false => (v1::request(operation), v1::responses(operation)),
    };
    if let Some(body) = request {
        told.insert("requestBody".to_owned(), body);
    }
    told.insert("responses".to_owned(), responses);
    Value::Object(told)
}
