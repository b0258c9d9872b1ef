//! ES-014: a schema and `Event::from_json` give the same verdict on every document. Valid documents are damaged at every
//! place with every value of a list that is chosen to hit the edges of what a field allows.

use proptest::prelude::*;
use serde_json::{Value, json};
use servo_model::event::EventBody;
use servo_model::{Event, Invalid};

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

/// The JSON pointers of everything below a value, in lists too.
fn places(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = |(name, value): (String, &Value)| {
        let inner: Vec<_> = places(value).into_iter().map(|path| format!("/{name}{path}")).collect();
        [format!("/{name}")].into_iter().chain(inner)
    };
    children.into_iter().flat_map(below).collect()
}

fn remove(document: &mut Value, place: &str) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.remove(name)),
        Value::Array(items) => drop(items.remove(name.parse().unwrap())),
        other => panic!("{place} in {other}"),
    }
}

/// Values at the edges: numbers, ids, names, times, digests, URIs, statuses, lengths in bytes and in characters.
fn values() -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.0),
        json!(2.5),
        json!(-0.0),
        json!(1e15),
        json!(1000),
        json!(1001),
        json!(1000.0),
        json!(4_294_967_295_u64),
        json!(4_294_967_296_u64),
        json!(4_294_967_296.0),
        json!(9_007_199_254_740_991_u64),
        json!(9_007_199_254_740_992_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!([]),
        json!({}),
        json!([1]),
        json!([[]]),
        json!([{}]),
        json!(["a"]),
        json!(["a", "a"]),
        json!(["a", "b"]),
        json!({"a": 1}),
        json!({"name": "k", "value": "hunter2"}),
        json!({"name": "k", "version": null}),
        json!({"maxAttempts": 1}),
        json!({"maxAttempts": 2.0, "delayMs": 0, "backoff": 2}),
        json!({"maxAttempts": 0}),
        json!({"code": "C", "message": "m"}),
        json!({"code": "", "message": "m"}),
        json!({"uri": "s3:x", "kind": "k"}),
        json!([{"uri": "s3:x", "kind": "k"}]),
        json!([["s3:x", "k", null, null, null]]),
        json!([{"stepId": "a"}]),
    ];
    let texts = [
        "",
        " ",
        "x",
        "RUN",
        "RUN ",
        "run",
        "a|b",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\u{0}b",
        "a\u{7f}",
        "a\u{85}b",
        "a\u{a0}",
        "\u{2003}a",
        "a\u{200b}",
        "\u{feff}a",
        "ä",
        "𝄞",
        "a\u{2028}b",
        "a\u{2028}",
        "*",
        "~",
        ".",
        "..",
        "a/b",
        "a//b",
        "/a",
        "a/",
        "a/./b",
        "a/../b",
        "a/.../b",
        "...a",
        "a:b",
        "a,b",
        "a%b",
        "-",
        "_",
        "1.2",
        "v1 2",
        "a|b",
        "ü",
        "PENDING",
        "APPROVED",
        "RUNNING",
        "PAUSED",
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "SUCCESS",
        "SKIPPED",
        "running",
        "manual",
        "api",
        "cron",
        "PAUSE",
        "RETRY_RUN",
        "FREEZE",
        "OPERATOR",
        "CONDITION",
        "UNKNOWN",
        "mock",
        "temporal",
        "s3://bucket/key",
        "s3:",
        "a+b.c-d:",
        "1s3:x",
        ":x",
        "s3",
        "data:text/plain,hi",
        "DATA:,",
        "dAtA:x",
        "data",
        "datax:y",
        "xdata:y",
        " data:x",
        "file:/tmp/a b\n",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8555",
        "01234567-89ab-cdef-0123-456789abcdef",
        "01234567-89AB-CDEF-0123-456789ABCDEF",
        "0123456789abcdef0123456789abcdef",
        "{01234567-89ab-cdef-0123-456789abcdef}",
        "urn:uuid:01234567-89ab-cdef-0123-456789abcdef",
        "01234567-89ab-cdef-0123-456789abcdeg",
        "01234567-89ab-cdef-01234-56789abcdef",
        "2026-02-11T10:30:00Z",
        "2026-02-11T10:30:00.123456789Z",
        "2026-02-11T10:30:00.1234567891Z",
        "2026-02-11T10:30:00+01:00",
        "2026-02-11T10:30:00-23:59",
        "2026-02-11T10:30:00+24:00",
        "2026-02-11T10:30:00+0100",
        "2026-02-11T10:30:00",
        "2026-02-11t10:30:00z",
        "2026-02-11 10:30:00Z",
        "2026-02-11",
        "2026-02-30T10:30:00Z",
        "2024-02-29T10:30:00Z",
        "2025-02-29T10:30:00Z",
        "2100-02-29T10:30:00Z",
        "2026-04-31T10:30:00Z",
        "2026-13-01T10:30:00Z",
        "2026-00-01T10:30:00Z",
        "2026-01-00T10:30:00Z",
        "2026-02-11T24:00:00Z",
        "2026-02-11T23:59:60Z",
        "2026-02-11T10:60:00Z",
        "1969-12-31T23:59:59Z",
        "1969-12-31T23:59:59-01:00",
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00+01:00",
        "1970-01-01T12:00:00+01:00",
        "1970-01-02T00:00:00+23:59",
        "9999-12-31T23:59:59.999Z",
        "9999-12-31T00:00:00-01:00",
        "9999-12-30T23:59:59-23:59",
        "10000-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
    ];
    values.extend(texts.map(Value::from));
    for length in [128, 129, 256, 257, 512, 2048, 2049, 8192, 8193] {
        values.push("x".repeat(length).into());
        values.push("ä".repeat(length).into());
        values.push(format!("s3:{}", "x".repeat(length - 3)).into());
        values.push(format!("s3:{}", "ä".repeat(length - 3)).into());
    }
    for count in [1000, 1001] {
        values.push(vec![json!({"uri": "s3:x", "kind": "k"}); count].into());
    }
    values
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
