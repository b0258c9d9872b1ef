//! What a schema says about an object's members, followed through `allOf` and `$ref`: their schemas and their defaults.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Types;
use crate::gts;

/// Deepest chain of `allOf` and `$ref` that is followed; published types need three.
const DEPTH_MAX: usize = 16;

/// Members of an object by name.
#[derive(Debug, Clone, Default)]
pub struct Properties(BTreeMap<String, Value>);

impl Properties {
    /// What a schema declares. A later declaration of one name wins, so a derived type can say more than its base.
    pub fn of(types: &Types, schema: &Value) -> Self {
        let mut found = Self::default();
        found.collect(types, schema, 0);
        found
    }

    fn collect(&mut self, types: &Types, schema: &Value, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if let Some(base) = referred(types, schema) {
            self.collect(types, &base, depth + 1);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.collect(types, part, depth + 1);
        }
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            match (self.0.get_mut(name).and_then(Value::as_object_mut), member.as_object()) {
                // Both parts hold: a workflow's `traits` are the base's and `workflow`.
                (Some(known), Some(_)) => {
                    let known = Value::Object(std::mem::take(known));
                    self.0.insert(name.clone(), Value::Object(both(known, member.clone())));
                }
                _ => {
                    self.0.insert(name.clone(), member.clone());
                }
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.keys().map(String::as_str)
    }
}

fn both(first: Value, second: Value) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("allOf".to_owned(), Value::Array(vec![first, second]));
    all
}

fn referred(types: &Types, schema: &Value) -> Option<Value> {
    types.get(schema.get("$ref")?.as_str()?.strip_prefix(gts::SCHEME)?)
}

/// A keyword of a schema, its own or one that `allOf` or `$ref` brings.
pub(crate) fn keyword(types: &Types, schema: &Value, name: &str) -> Option<Value> {
    fn find(types: &Types, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some(value) = schema.get(name) {
            return Some(value.clone());
        }
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        parts
            .filter_map(|part| find(types, part, name, depth + 1))
            .next()
            .or_else(|| find(types, &referred(types, schema)?, name, depth + 1))
    }
    find(types, schema, name, 0)
}

/// To JSON Schema 30.0 is an integer; to those who read the document later it should be one as well.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the range of exact integers")]
fn whole(value: &mut Value) {
    if let Some(number) = value.as_f64().filter(|_| value.is_f64())
        && number.fract() == 0.0
        && (0.0..9e15).contains(&number)
    {
        *value = Value::from(number as u64);
    }
}

/// Puts the defaults of omitted members into a document, also inside members that are there. An omitted member without a
/// default stays omitted, whatever is inside it.
pub fn fill_defaults(types: &Types, schema: &Value, document: &mut Value) {
    fill(types, schema, document, 0);
}

fn fill(types: &Types, schema: &Value, document: &mut Value, depth: usize) {
    let Some(object) = document.as_object_mut() else { return };
    if depth > DEPTH_MAX {
        return;
    }
    for (name, member) in Properties::of(types, schema).0 {
        match object.get_mut(&name) {
            Some(value) => {
                if keyword(types, &member, "type").is_some_and(|kind| kind == "integer") {
                    whole(value);
                }
                fill(types, &member, value, depth + 1);
            }
            None => {
                if let Some(default) = keyword(types, &member, "default") {
                    object.insert(name, default);
                }
            }
        }
    }
}
