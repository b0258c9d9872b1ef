//! Schemas and documents that were written to do harm.

use serde_json::{Value, json};
use servo_entrypoint::{CompiledEntrypoint, EntrypointSchema, Types, ValidationError};

use crate::support::{World, minimal, with};

fn fault(schema: &Value) -> String {
    match Types::published().compile(schema) {
        Ok(_) => panic!("compiled: {schema}"),
        Err(fault) => fault.message,
    }
}

/// SR-019: a reference is part of an address, in which characters may stand as their codes.
#[test]
fn references_are_read_as_addresses() {
    for (reference, name) in [("a%20b", "a b"), ("a%2fb", "a"), ("%C3%A4", "ä"), ("a%25", "a%"), ("a~1b", "a/b")] {
        let schema = json!({
            "properties": {"x": {"$ref": format!("#/$defs/{reference}")}},
            "$defs": {name: {"type": "integer", "b": {"type": "integer"}}},
        });
        let compiled = Types::published().compile(&schema).unwrap();
        assert!(compiled.is_valid(&json!({"x": 1})) && !compiled.is_valid(&json!({"x": "1"})), "{reference}");
    }
    for reference in ["a%20c", "%FF", "%2"] {
        let schema = json!({"$ref": format!("#/$defs/{reference}"), "$defs": {"a b": {}}});
        assert!(fault(&schema).contains("refers to nothing"), "{reference}");
    }
}

#[test]
fn schemas_that_never_end_are_refused() {
    for schema in [
        json!({"$ref": "#/%24defs/a", "$defs": {"a": {"$ref": "#/$defs/%61"}}}),
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

/// A document can be wrong in more ways than can be told: the answer then comes without the place.
#[test]
fn deep_faults_of_recursive_schemas_are_not_spelt_out() {
    let expression = json!({
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {"oneOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}, {"type": "integer"}]},
            "x": {"type": "object", "required": ["x"], "properties": {"a": {"$ref": "#/$defs/node"}}},
            "y": {"type": "object", "required": ["y"], "properties": {"a": {"$ref": "#/$defs/node"}}},
        },
    });
    let schema = EntrypointSchema { params: expression, returns: Value::Null, errors: Vec::new() };
    let entrypoint = CompiledEntrypoint::compile(&Types::published(), &schema).unwrap();
    let nested = |depth: usize, leaf: Value| (0..depth).fold(leaf, |inner, _| json!({"x": 1, "a": inner}));
    let place = |depth: usize| {
        let failure = entrypoint.check_params(Some(&nested(depth, json!("wrong")))).unwrap_err();
        ValidationError::of(&failure).unwrap().issues[0].location.path.clone()
    };
    assert!(place(4).starts_with("$.params.a"));
    assert_eq!(place(60), "$.params");
    assert!(entrypoint.check_params(Some(&nested(60, json!(1)))).is_ok());
    // One way back is no fork: such documents are described at any depth.
    let list = EntrypointSchema { params: json!({"properties": {"a": {"$ref": "#"}}, "type": "object"}), ..schema };
    let entrypoint = CompiledEntrypoint::compile(&Types::published(), &list).unwrap();
    let failure = entrypoint.check_params(Some(&nested(60, json!("wrong")))).unwrap_err();
    assert!(ValidationError::of(&failure).unwrap().issues[0].location.path.ends_with(".a.a.a"));
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

/// S16: alternatives cost what they cost only where a document may have many of the place: beside a large list they do not make it
/// one that is too large, and inside of it they do.
#[test]
fn alternatives_count_where_a_document_has_many_places() {
    let choice = || json!({"oneOf": (0..300).map(|word| json!({"const": format!("w{word}")})).collect::<Vec<_>>()});
    let numbers = |count: usize| vec![json!(1); count];
    let beside = json!({"properties": {"kind": choice(), "samples": {"items": {"type": "integer"}}}});
    let schema = Types::published().compile(&beside).unwrap();
    assert!(schema.is_valid(&json!({"kind": "w7", "samples": numbers(400_000)})));
    let inside = json!({"properties": {"samples": {"items": choice()}}});
    let referred = json!({"properties": {"samples": {"items": {"$ref": "#/properties/one"}}, "one": choice()}});
    for schema in [inside, referred] {
        let schema = Types::published().compile(&schema).unwrap();
        assert!(schema.is_valid(&json!({"samples": vec![json!("w1"); 100]})));
        assert!(!schema.is_valid(&json!({"samples": vec![json!("w1"); 400_000]})));
    }
}
