//! The API as a page, with the command that asks for each operation.

use serde_json::Value;

use super::cell;
use super::operations::{self, How};

pub(super) struct Operation<'a> {
    pub(super) id: &'a str,
    method: String,
    path: &'a str,
    document: &'a Value,
}

pub(super) fn operations(spec: &Value) -> Vec<Operation<'_>> {
    let mut all = Vec::new();
    for (path, methods) in spec["paths"].as_object().unwrap() {
        for (method, document) in methods.as_object().unwrap() {
            let id = document["operationId"].as_str().unwrap();
            all.push(Operation { id, method: method.to_uppercase(), path, document });
        }
    }
    all
}

pub(super) fn page(spec: &Value) -> String {
    let mut out = String::from(
        "# Operations of the API\n\nWritten by `cargo xtask reference` from [spec/openapi.json](../../spec/openapi.json), which a server also gives \
         out at `/openapi.json`. What the words mean, and the Lambda API, which AWS describes, are in [api.md](../api.md).\n",
    );
    let all = operations(spec);
    for tag in spec["tags"].as_array().unwrap() {
        let name = tag["name"].as_str().unwrap();
        out.push_str(&format!("\n## {name}\n\n{}\n", tag["description"].as_str().unwrap()));
        for operation in all.iter().filter(|operation| operation.document["tags"][0] == name) {
            section(operation, &mut out);
        }
    }
    out.push_str("\n## Lambda's durable API\n\n| operation | command |\n|---|---|\n");
    for (id, how) in operations::LAMBDA {
        out.push_str(&format!("| {id} | {} |\n", command(how)));
    }
    out.push_str("\n## Documents\n");
    let schemas = spec["components"]["schemas"].as_object().unwrap();
    // The published types have their ids for names, and `servo types get` prints them.
    for (name, schema) in schemas.iter().filter(|(name, _)| !name.starts_with("gts.")) {
        document(name, schema, &mut out);
    }
    out
}

fn command(how: &How) -> String {
    match how {
        How::Command(line) => format!("`servo {line}`"),
        How::Without(reason) => (*reason).to_owned(),
    }
}

fn section(operation: &Operation<'_>, out: &mut String) {
    let text = |field: &str| operation.document[field].as_str().unwrap_or_default();
    let how = operations::command(operation.id).map(command).unwrap_or_default();
    out.push_str(&format!(
        "\n### `{} {}`\n\n{}. {} `{}`; {how}.\n",
        operation.method,
        operation.path,
        text("summary"),
        text("description"),
        operation.id,
    ));
    let parameters = operation.document["parameters"].as_array().cloned().unwrap_or_default();
    // The same on every operation; api.md has it.
    let own: Vec<_> = parameters.iter().filter(|parameter| parameter["name"] != "X-Correlation-Id").collect();
    if !own.is_empty() {
        out.push_str("\n| parameter | | |\n|---|---|---|\n");
        for parameter in own {
            let text = |field: &str| parameter[field].as_str().unwrap_or_default();
            let (kind, what) = (type_of(&parameter["schema"]), cell(text("description")));
            out.push_str(&format!("| `{}` ({}) | {kind} | {what} |\n", text("name"), text("in")));
        }
    }
    let body = &operation.document["requestBody"]["content"];
    for (kind, content) in body.as_object().into_iter().flatten() {
        out.push_str(&format!("\nTakes {} as `{kind}`.\n", type_of(&content["schema"])));
    }
    let answers = operation.document["responses"].as_object().into_iter().flatten();
    let mut refusals = Vec::new();
    for (status, answer) in answers {
        match answer["$ref"].as_str() {
            Some(_) => refusals.push(status.as_str()),
            None if status == "default" => {}
            None => {
                let kinds = answer["content"].as_object();
                let schema = kinds.and_then(|kinds| kinds.values().next()).map(|content| type_of(&content["schema"]));
                let schema = schema.map(|schema| format!(" ({schema})")).unwrap_or_default();
                out.push_str(&format!("\n{status}: {}{schema}\n", answer["description"].as_str().unwrap_or_default()));
            }
        }
    }
    if !refusals.is_empty() {
        out.push_str(&format!("\nRefusals: {}.\n", refusals.join(", ")));
    }
}

/// A type in a few words.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return if name.starts_with("gts.") {
            format!("`{name}`")
        } else {
            format!("[{name}](#{})", name.to_lowercase())
        };
    }
    if let Some(values) = schema["enum"].as_array() {
        let words: Vec<_> = values.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect::<Vec<_>>().join(" or ")
        }
        kind => kind.as_str().unwrap_or("any").to_owned(),
    };
    let items = &schema["items"];
    if kind == "array" && !items.is_null() { format!("list of {}", type_of(items)) } else { kind }
}

fn document(name: &str, schema: &Value, out: &mut String) {
    // A document may be a published type with fields of its own.
    let parts = schema["allOf"].as_array().map_or_else(|| vec![schema], |parts| parts.iter().collect());
    let types: Vec<_> = parts.iter().filter(|part| part["$ref"].is_string()).map(|part| type_of(part)).collect();
    let own: Vec<_> = parts.iter().filter_map(|part| Some((part, part["properties"].as_object()?))).collect();
    // Also of a document without fields of its own: what refers to it leads here.
    out.push_str(&format!("\n### {name}\n"));
    if types.is_empty() && own.iter().all(|(_, fields)| fields.is_empty()) {
        out.push_str(&format!("\n{}\n", unlisted(schema)));
        return;
    }
    if !types.is_empty() {
        out.push_str(&format!("\nAll that {} has, and:\n", types.join(" and ")));
    }
    out.push_str("\n| field | | |\n|---|---|---|\n");
    for (part, fields) in own {
        let required = part["required"].as_array().cloned().unwrap_or_default();
        for (field, schema) in fields {
            let must = if required.iter().any(|name| name == field) { "" } else { ", may be missing" };
            let what = cell(schema["description"].as_str().unwrap_or_default());
            out.push_str(&format!("| `{field}` | {}{must} | {what} |\n", cell(&type_of(schema))));
        }
    }
}

/// What a document is whose fields are not the same in each.
fn unlisted(schema: &Value) -> String {
    let Some(forms) = schema["oneOf"].as_array() else { return format!("A JSON {} of any form.", type_of(schema)) };
    // Each form has one field with a fixed value, which is its name.
    let name = |form: &Value| {
        let fields = form["properties"].as_object()?;
        fields.iter().find_map(|(field, schema)| Some((field.clone(), schema["const"].as_str()?.to_owned())))
    };
    let names: Vec<_> = forms.iter().filter_map(name).collect();
    let field = names.first().map(|(field, _)| field.as_str()).unwrap_or_default();
    let words: Vec<_> = names.iter().map(|(_, word)| format!("`{word}`")).collect();
    format!("Its fields depend on `{field}`, as the description has them: {}.", words.join(", "))
}
