//! A Starlark file as an entrypoint: `NAME.star` is a function, `NAME.workflow.star` a workflow. A file of the same name with
//! `.json` says the rest, in the words of the API, and everything in it is optional.

use std::path::Path;

use serde_json::{Map, Value, json};
use servo_entrypoint::gts::{FUNCTION, STARLARK, WORKFLOW};
use servo_model::TenantId;

/// Marks what came from a folder, so that it is known again after a restart.
pub(super) const TAG: &str = "servo-dev";
/// Where a file's entrypoint is unless it says otherwise.
const NAMESPACE: &str = "dev.local";
/// What a file may say about its entrypoint; the rest follows from the file itself.
const KEYS: [&str; 6] = ["name", "title", "description", "tags", "schema", "traits"];
/// Larger files are no code.
const BYTES_MAX: u64 = 1 << 20;

pub(super) const SOURCE: &str = ".star";
const WORKFLOW_SOURCE: &str = ".workflow.star";

/// The file that goes with a source.
pub(super) fn beside(file: &str) -> String {
    format!("{}.json", file.strip_suffix(SOURCE).unwrap_or(file))
}

#[derive(Debug)]
pub(super) struct Definition {
    workflow: bool,
    /// Such as `dev.local.order`.
    name: String,
    source: String,
    said: Map<String, Value>,
}

impl Definition {
    /// What a file defines, or what is wrong with it and where.
    pub(super) fn read(folder: &Path, file: &str) -> Result<Self, String> {
        let source = text(folder, file)?.ok_or_else(|| format!("{file}: it is not there any more"))?;
        let sidecar = beside(file);
        let said = match text(folder, &sidecar)? {
            Some(text) => parse(&sidecar, &text)?,
            None => Map::new(),
        };
        Self::new(file, source, said)
    }

    fn new(file: &str, source: String, mut said: Map<String, Value>) -> Result<Self, String> {
        let sidecar = beside(file);
        if let Some(unknown) = said.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("{sidecar}: there is no key `{unknown}` here; known are: {}", KEYS.join(", ")));
        }
        let workflow = file.ends_with(WORKFLOW_SOURCE);
        let stem = file.strip_suffix(if workflow { WORKFLOW_SOURCE } else { SOURCE }).unwrap_or(file);
        let name = match said.remove("name") {
            Some(Value::String(name)) => name,
            Some(_) => return Err(format!("{sidecar}: `name` is a text such as \"vendor.app.{stem}\"")),
            None => format!("{NAMESPACE}.{stem}"),
        };
        Ok(Self { workflow, name, source, said })
    }

    /// What the addresses of all its versions begin with.
    pub(super) fn prefix(&self) -> String {
        format!("{}{}.v", if self.workflow { WORKFLOW } else { FUNCTION }, self.name)
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// How it is called on the command line.
    pub(super) fn call(&self, version: u32) -> String {
        let workflow = if self.workflow { " --workflow" } else { "" };
        format!("servo invocations start {}.v{version}{workflow}", self.name)
    }

    /// As the API takes it.
    pub(super) fn document(&self, version: u32) -> Value {
        let tenant = TenantId::default_tenant();
        let mut document = json!({
            "title": self.name, "tags": [],
            "schema": {"params": {"type": "object"}, "returns": {}, "errors": []},
            "traits": {"invocation": {"supported": ["sync", "async"], "default": "async"},
                "limits": {"timeout_seconds": 60}, "retry": {"max_attempts": 3, "non_retryable_errors": []}},
        });
        if self.workflow {
            document["traits"]["workflow"] = json!({"compensation": {"on_failure": null, "on_cancel": null},
                "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 30});
        }
        lay_over(&mut document, &Value::Object(self.said.clone()));
        if let Some(tags) = document["tags"].as_array_mut() {
            tags.push(json!(TAG));
        }
        document["entrypoint_id"] = json!(format!("{}{version}~", self.prefix()));
        document["version"] = json!(format!("{version}.0.0"));
        document["owner"] = json!({"owner_type": "tenant", "id": tenant, "tenant_id": tenant});
        document["implementation"] = json!({"adapter": STARLARK, "kind": "code",
            "code": {"language": "starlark", "source": self.source}});
        document
    }
}

/// Objects are laid over each other key by key; everything else is replaced.
fn lay_over(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A file's text; `None` if there is no such file.
fn text(folder: &Path, file: &str) -> Result<Option<String>, String> {
    let path = folder.join(file);
    match std::fs::metadata(&path) {
        Ok(meta) if meta.len() > BYTES_MAX => Err(format!("{file}: it is larger than 1 MiB, and code is not")),
        Ok(_) => std::fs::read_to_string(&path).map(Some).map_err(|error| format!("{file}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{file}: {error}")),
    }
}

fn parse(file: &str, text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(said)) => Ok(said),
        Ok(_) => Err(format!("{file}:1:1: this is no object such as {{\"title\": \"An order\"}}")),
        Err(error) => Err(format!("{file}:{}:{}: {error}", error.line(), error.column())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(file: &str, said: Value) -> Result<Definition, String> {
        let Value::Object(said) = said else { panic!("an object") };
        Definition::new(file, "def main(ctx, input):\n    return input\n".to_owned(), said)
    }

    #[test]
    fn the_name_says_the_kind() {
        let function = defined("greet.star", json!({})).unwrap().document(1);
        assert_eq!(function["entrypoint_id"], format!("{FUNCTION}dev.local.greet.v1~"));
        assert!(function["traits"]["workflow"].is_null());
        let workflow = defined("order.workflow.star", json!({})).unwrap();
        assert_eq!(workflow.document(3)["entrypoint_id"], format!("{WORKFLOW}dev.local.order.v3~"));
        assert_eq!(workflow.document(3)["version"], "3.0.0");
        assert_eq!(beside("order.workflow.star"), "order.workflow.json");
        assert_eq!(workflow.call(3), "servo invocations start dev.local.order.v3 --workflow");
    }

    #[test]
    fn the_file_beside_it_is_laid_over_the_defaults() {
        let said = json!({"name": "acme.shop.order", "tags": ["shop"], "traits": {"limits": {"timeout_seconds": 5}}});
        let document = defined("order.workflow.star", said).unwrap().document(1);
        assert_eq!(document["entrypoint_id"], format!("{WORKFLOW}acme.shop.order.v1~"));
        assert_eq!(document["tags"], json!(["shop", TAG]));
        assert_eq!(document["traits"]["limits"], json!({"timeout_seconds": 5}));
        assert_eq!(document["traits"]["retry"]["max_attempts"], 3);
    }

    #[test]
    fn what_is_wrong_names_its_place() {
        let unknown = defined("greet.star", json!({"version": "2"})).unwrap_err();
        assert!(unknown.starts_with("greet.json: there is no key `version`"), "{unknown}");
        let broken = parse("greet.json", "{\n  \"title\": }\n").unwrap_err();
        assert!(broken.starts_with("greet.json:2:12: "), "{broken}");
    }

    /// What the guide shows is taken.
    #[test]
    fn the_example_of_the_guide_is_a_definition() {
        let guide = include_str!("../../../../docs/guides/dev-server.md");
        let example = guide.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let said = parse("order.workflow.json", example).unwrap();
        let document = defined("order.workflow.star", Value::Object(said)).unwrap().document(1);
        assert_eq!(document["entrypoint_id"], format!("{WORKFLOW}acme.shop.order.v1~"));
        assert_eq!(document["traits"]["retry"]["max_attempts"], 1);
    }
}
