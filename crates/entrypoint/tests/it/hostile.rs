//! Schemas and documents that were written to do harm.

use serde_json::{Value, json};
use servo_entrypoint::Types;

use crate::support::{World, minimal, with};

fn fault(schema: &Value) -> String {
    match Types::published().compile(schema) {
        Ok(_) => panic!("compiled: {schema}"),
        Err(fault) => fault.message,
    }
}

#[test]
fn schemas_that_never_end_are_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"anyOf": [{"$ref": "#"}]}}),
        json!({"if": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "oneOf": [{"$ref": "#x"}]}}}),
        json!({"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
    ] {
        assert!(fault(&schema).contains("refers to itself"), "{schema}");
    }
}

/// A tree is a schema that refers to itself and goes deeper each time.
#[test]
fn recursive_data_is_fine() {
    let tree = json!({
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "values": {"items": {"$ref": "#/$defs/value"}}},
        "additionalProperties": false,
        "$defs": {"value": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/value"}}]}},
    });
    let validator = Types::published().compile(&tree).unwrap();
    assert!(validator.is_valid(&json!({"left": {"right": {"values": [1, [2, [3]]]}}})));
    assert!(!validator.is_valid(&json!({"left": {"right": {"values": [1, [2, ["x"]]]}}})));
}

#[test]
fn schemas_that_explode_are_refused() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d40".to_owned(), json!({}));
    assert!(fault(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).contains("would apply"));
}

#[test]
fn long_chains_and_large_schemas_are_refused() {
    let chain = |length: usize, link: fn(String) -> Value| {
        let mut definitions = serde_json::Map::new();
        for level in 0..length {
            definitions.insert(format!("d{level}"), link(format!("#/$defs/d{}", level + 1)));
        }
        definitions.insert(format!("d{length}"), json!({}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    assert!(fault(&chain(240, |next| json!({"$ref": next}))).contains("deep"));
    assert!(fault(&chain(1_000, |next| json!({"properties": {"a": {"$ref": next}}}))).contains("references"));
    // What is allowed compiles on the small stack of a test's thread.
    assert!(Types::published().compile(&chain(240, |next| json!({"properties": {"a": {"$ref": next}}}))).is_ok());
    let large = json!({"description": "x".repeat(300_000)});
    assert!(fault(&large).contains("bytes"));
    assert!(fault(&json!({"$defs": {"a": {"$id": "gts://gts.a.b.c.v1~"}}})).contains("$id"));
}

/// Patterns are matched in linear time, so those that would need more are refused.
#[test]
fn patterns_cannot_run_for_minutes() {
    let validator = Types::published().compile(&json!({"pattern": "^(a+)+$"})).unwrap();
    assert!(!validator.is_valid(&json!(format!("{}b", "a".repeat(50_000)))));
    assert!(!fault(&json!({"pattern": "(?=a)b"})).is_empty());
    assert!(!fault(&json!({"pattern": "(((a{1000}){1000}){1000})"})).is_empty());
}

#[test]
fn documents_are_bounded() {
    let world = World::new();
    let large = with(minimal(), "/x_note", json!("x".repeat(2_000_000)));
    assert_eq!(world.faults(&large), ["$ limit_exceeded"]);
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(world.faults(&with(minimal(), "/x_note", deep)), ["$ limit_exceeded"]);
    for document in [json!(1), json!([]), json!(null), json!("x")] {
        assert_eq!(world.faults(&document), ["$ schema_mismatch"]);
    }
    let many: Vec<_> = (0..1_000).map(Value::from).collect();
    assert_eq!(world.issues(&with(minimal(), "/tags", many.into())).len(), 100);
    let long = with(minimal(), "/tags", json!(["x".repeat(200)]));
    assert_eq!(world.faults(&long), ["$.tags[0] limit_exceeded"]);
}
