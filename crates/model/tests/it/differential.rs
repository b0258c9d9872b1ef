//! ES-014: a schema and `Event::from_json` give the same verdict on every document. Valid documents are damaged at every
//! place with every value of a list that is chosen to hit the edges of what a field allows.

use proptest::prelude::*;
use serde_json::{Value, json};
use servo_model::event::EventBody;
use servo_model::{Event, Invalid};

use crate::damage::{places, remove, values};
use crate::samples::{fullest, smallest};
use crate::schemas::validators;

/// For each type the smallest and the fullest document.
fn documents() -> Vec<Value> {
    let pairs = smallest().into_iter().zip(fullest()).flat_map(|(small, full)| [small, full]);
    pairs.map(|event| serde_json::from_str(&event.to_json()).unwrap()).collect()
}

/// Whether the text is an event of this type, and if not, why.
fn accepts(event_type: &str, text: &str) -> Result<(), Invalid> {
    let event = Event::from_json(text)?;
    match &event.body {
        EventBody::Unknown(_) => Err(Invalid::new("eventType", "another type")),
        body if body.event_type() != event_type => Err(Invalid::new("eventType", "another type")),
        _ => Ok(()),
    }
}

/// Rules between steps, which a schema cannot state.
fn is_about_the_graph(error: &Invalid) -> bool {
    let rules = ["is no step of this plan", "is the id of an earlier step", "is part of a cycle or behind one"];
    error.field.starts_with("plan/steps/") && rules.iter().any(|rule| error.reason.contains(rule))
}

/// Panics if schema and code differ. Returns the code's verdict.
fn compare(event_type: &str, document: &Value) -> Result<(), Invalid> {
    let schema: Vec<_> = validators()[event_type].iter_errors(document).map(|error| error.to_string()).collect();
    let code = accepts(event_type, &document.to_string());
    match &code {
        Err(error) if is_about_the_graph(error) => {}
        Err(error) => assert!(!schema.is_empty(), "only the code refuses ({error}): {document}"),
        Ok(()) => assert!(schema.is_empty(), "only the schema refuses ({schema:?}): {document}"),
    }
    code
}

/// One damage at a time, everywhere. The error names the damaged field, or one around or inside it.
#[test]
fn one_wrong_value_anywhere() {
    let values = values();
    let (mut accepted, mut refused) = (0, 0);
    for whole in documents() {
        let event_type = whole["eventType"].as_str().unwrap();
        assert_eq!(compare(event_type, &whole), Ok(()));
        for place in places(&whole) {
            let named = |error: &Invalid| {
                let place = &place[1..];
                let (long, short) = if error.field.len() > place.len() {
                    (error.field.as_str(), place)
                } else {
                    (place, error.field.as_str())
                };
                !short.is_empty() && (long == short || long.starts_with(&format!("{short}/")))
            };
            let mut without = whole.clone();
            remove(&mut without, &place);
            if let Err(error) = compare(event_type, &without) {
                assert!(named(&error) || is_about_the_graph(&error), "without {place}: {error:?}");
            }
            for value in &values {
                let mut document = whole.clone();
                *document.pointer_mut(&place).unwrap() = value.clone();
                match compare(event_type, &document) {
                    Ok(()) => accepted += 1,
                    Err(error) => {
                        refused += 1;
                        assert!(named(&error) || is_about_the_graph(&error), "{place} = {value}: {error:?}");
                    }
                }
            }
        }
    }
    assert!(accepted > 1_000 && refused > 10_000, "{accepted} accepted, {refused} refused");
}

/// The control of the test above: without any one of its rules, a schema gives another verdict somewhere. A rule that
/// no damage notices would be a rule that nothing tests.
#[test]
fn every_rule_of_every_schema_is_tested() {
    let values = values();
    let mut rules_seen = 0;
    for documents in documents().chunk_by(|a, b| a["eventType"] == b["eventType"]) {
        assert_eq!(documents.len(), 2);
        let event_type = documents[0]["eventType"].as_str().unwrap();
        let schema = crate::schemas::schema(event_type);
        // Every damage that schema and code refuse, as a place and a value; `None` removes the place.
        let mut refused: Vec<(&Value, String, Option<&Value>)> = Vec::new();
        for whole in documents {
            for place in places(whole) {
                refused.extend(values.iter().map(Some).chain([None]).map(|value| (whole, place.clone(), value)));
            }
        }
        let damaged = |(whole, place, value): &(&Value, String, Option<&Value>)| {
            let mut document = (*whole).clone();
            match value {
                Some(value) => *document.pointer_mut(place).unwrap() = (*value).clone(),
                None => remove(&mut document, place),
            }
            document
        };
        let strict = crate::schemas::validator(&schema);
        refused.retain(|damage| !strict.is_valid(&damaged(damage)));
        for (place, rule) in rules(&schema, "") {
            let mut loose = schema.clone();
            let parent = loose.pointer_mut(&place).unwrap();
            match parent {
                Value::Array(names) => drop(names.remove(rule.parse().unwrap())),
                parent => {
                    let keywords = parent.as_object_mut().unwrap();
                    keywords.remove(&rule);
                    // Said twice, for readers that know the one or the other.
                    if rule == "pattern" && keywords.get("format").is_some_and(|format| format == "uuid") {
                        keywords.remove("format");
                    }
                }
            }
            let loose = crate::schemas::validator(&loose);
            let mut near = refused.iter().filter(|(_, damage, _)| is_near(&place, damage));
            assert!(near.any(|damage| loose.is_valid(&damaged(damage))), "{event_type}: {place}/{rule}");
            rules_seen += 1;
        }
    }
    assert!(rules_seen > 400, "{rules_seen}");
}

/// Whether a damage is at a place that the rule is about, or directly below it. Without this the test would look at
/// every damage for every rule. A shared definition is about any place.
fn is_near(rule: &str, damage: &str) -> bool {
    let rule = rule.trim_end_matches("/required");
    let steps = rule.split('/').skip(1).filter(|step| *step != "properties");
    let steps: Vec<&str> = steps.collect();
    let places: Vec<&str> = damage.split('/').skip(1).collect();
    let same = steps.iter().zip(&places).all(|(step, place)| step == place || *step == "items");
    steps.first() == Some(&"$defs") || (same && (steps.len()..=steps.len() + 1).contains(&places.len()))
}

/// Where a schema has rules: the place of the object or list, and the keyword or index in it.
fn rules(schema: &Value, place: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let inner = format!("{place}/{keyword}");
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                found.extend(schemas.iter().flat_map(|(name, schema)| rules(schema, &format!("{inner}/{name}"))));
            }
            ("items", value) => found.extend(rules(value, &inner)),
            ("required", Value::Array(names)) => found.extend((0..names.len()).map(|n| (inner.clone(), n.to_string()))),
            ("type", _) if schema.get("enum").is_some() || place.is_empty() => {}
            ("format", value) if value == "uuid" => {}
            (
                "type" | "const" | "enum" | "pattern" | "format" | "minimum" | "maximum" | "minLength" | "maxLength"
                | "minItems" | "maxItems" | "uniqueItems" | "$ref" | "anyOf",
                _,
            )
            | ("additionalProperties", Value::Bool(false)) => found.push((place.to_owned(), keyword.clone())),
            _ => {}
        }
    }
    found
}

/// serde would read a struct from a list of its fields; the contract does not.
#[test]
fn objects_are_not_lists() {
    for whole in documents() {
        let event_type = whole["eventType"].as_str().unwrap();
        for place in places(&whole) {
            let Value::Object(fields) = whole.pointer(&place).unwrap() else { continue };
            // What an adapter gets is its own affair.
            if place.contains("/with") {
                continue;
            }
            let orders: [&[&str]; 8] = [
                &["uri", "sha256", "schemaVersion", "planId", "planVersion"],
                &["tenantId", "projectId", "environmentId", "triggeredBy", "triggerSource"],
                &["category", "code", "message", "retryable"],
                &["stepId", "code", "message"],
                &["uri", "kind", "sha256", "sizeBytes", "expiresAt"],
                &["planId", "planVersion", "schemaVersion", "engineType", "steps"],
                &["stepId", "dependsOn", "with", "retry", "timeoutMs", "secrets"],
                &["maxAttempts", "delayMs"],
            ];
            for order in orders {
                let list: Vec<Value> =
                    order.iter().map(|name| fields.get(*name).cloned().unwrap_or_default()).collect();
                let mut document = whole.clone();
                *document.pointer_mut(&place).unwrap() = list.into();
                assert!(compare(event_type, &document).is_err(), "{document}");
            }
        }
    }
}

/// New fields are tolerated everywhere, but a secret has a name and a version and nothing else.
#[test]
fn new_fields_are_tolerated() {
    for whole in documents() {
        let event_type = whole["eventType"].as_str().unwrap();
        for place in places(&whole).into_iter().chain([String::new()]) {
            let mut document = whole.clone();
            let Some(Value::Object(fields)) = document.pointer_mut(&place) else { continue };
            fields.insert("addedLater".to_owned(), json!({"deep": [1, null]}));
            let verdict = compare(event_type, &document);
            assert_eq!(verdict.is_ok(), !place.contains("/secrets/"), "{place}: {verdict:?}");
        }
    }
}

/// What is no JSON object is refused before any schema could look at it.
#[test]
fn texts_that_are_no_objects_are_refused() {
    for text in ["", "null", "[]", "5", "\"RunStarted\"", "{", "{}", "{\"eventType\":}", "{} {}"] {
        assert!(Event::from_json(text).is_err(), "{text}");
    }
    let deep = |levels: usize| {
        let mut document = serde_json::from_str::<Value>(&smallest()[3].to_json()).unwrap().to_string();
        document.truncate(document.len() - 1);
        format!("{document},\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
    };
    assert!(Event::from_json(&deep(63)).is_ok());
    assert!(Event::from_json(&deep(64)).unwrap_err().reason.contains("64 levels"));
    assert!(Event::from_json(&deep(1_000_000)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Several damages at once, at random places.
    #[test]
    fn several_wrong_values(
        number in any::<prop::sample::Index>(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let documents = documents();
        let mut document = number.get(&documents).clone();
        let event_type = document["eventType"].as_str().unwrap().to_owned();
        let values = values();
        for (place, value) in damages {
            let places = places(&document);
            if places.is_empty() {
                break;
            }
            *document.pointer_mut(place.get(&places).as_str()).unwrap() = value.get(&values).clone();
        }
        let _ = compare(&event_type, &document);
    }

    /// Random text in the fields that have a pattern.
    #[test]
    fn random_text(text in "\\PC{0,12}|[ -~]{0,140}|[a-z/.:|\\s\\x00-\\x1f]{0,8}", place in any::<prop::sample::Index>()) {
        let document: Value = serde_json::from_str(&fullest()[2].to_json()).unwrap();
        let with_step: Value = serde_json::from_str(&fullest()[6].to_json()).unwrap();
        for mut document in [document, with_step] {
            let event_type = document["eventType"].as_str().unwrap().to_owned();
            let places = places(&document);
            *document.pointer_mut(place.get(&places).as_str()).unwrap() = text.clone().into();
            let _ = compare(&event_type, &document);
        }
    }
}
