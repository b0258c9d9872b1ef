//! Schemas come from callers, so their cost is bounded before they are compiled: their size, and how often one place of a
//! document is looked at. A schema that refers to itself without going deeper into the document would never end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{SchemaFault, Types};
use crate::gts;

/// Largest schema.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// How many schemas may apply to one place of a document, counting repeated references each time.
pub const EXPANSION_MAX: u64 = 1_000;
/// Longest chain of references and combined schemas; the compiler of schemas recurses along it.
const DEPTH_MAX: usize = 100;
/// References in one schema.
const REFERENCES_MAX: usize = 250;
/// References in a schema and the types that it reaches.
const ALL_REFERENCES_MAX: usize = 1_000;
/// Types that one schema reaches.
const TYPES_MAX: usize = 100;
/// Bytes of the places of all schemas in a schema, each written out. The compiler writes them out, so a long name around many
/// schemas would be repeated for each of them.
const PLACES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keywords whose schemas apply to many places of a document, and where schemas stand that others refer to.
const MANY: [&str; 11] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "propertyNames",
    "$defs",
    "definitions",
];
/// Keywords whose schemas apply to the same place of the document.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose values are data, in which `$ref` means nothing.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The name of a root, which is empty for the schema itself and an id for a type, and a pointer in it.
pub(super) type Place = (String, String);

/// What was found out about a schema whose cost is bounded.
pub(super) struct Bounded {
    /// The schema and all types that it reaches.
    pub(super) roots: BTreeMap<String, Value>,
    /// The most schemas that apply to one place of which a document may have many.
    pub(super) weight: u64,
}

pub(super) fn check(types: &Types, schema: &Value) -> Result<Bounded, SchemaFault> {
    if serde_json::to_vec(schema).map_or(true, |bytes| bytes.len() > SCHEMA_BYTES_MAX) {
        return Err(SchemaFault::new("", format!("a schema has at most {SCHEMA_BYTES_MAX} bytes")));
    }
    places(schema)?;
    let mut count = 0_usize;
    references(schema, "", &mut |_, _| count += 1);
    if count > REFERENCES_MAX {
        return Err(SchemaFault::new("", format!("a schema has at most {REFERENCES_MAX} references")));
    }
    let mut roots = BTreeMap::from([(String::new(), schema.clone())]);
    load(types, &mut roots)?;
    let mut cost = Cost { roots: &roots, known: BTreeMap::new(), open: BTreeSet::new() };
    for (name, root) in &roots {
        cost.everywhere(name, "", root)?;
    }
    // A place that a document has once costs nothing that counts.
    let all = refers_inside(&roots);
    let weights = cost.known.iter().filter(|(place, _)| all || is_repeated(place)).map(|(_, weight)| *weight);
    let weight = weights.max().unwrap_or(1);
    Ok(Bounded { roots, weight })
}

/// Whether a document may have a place many times. A property of this name is taken for one, too.
fn is_repeated((root, pointer): &Place) -> bool {
    !root.is_empty() || pointer.split('/').any(|part| MANY.contains(&part))
}

/// Whether a reference leads into the middle of a schema, so that any place may be reached from anywhere.
fn refers_inside(roots: &BTreeMap<String, Value>) -> bool {
    let mut found = false;
    for root in roots.values() {
        references(root, "", &mut |_, reference| {
            found |= reference
                .split_once('#')
                .is_some_and(|(_, inner)| !inner.starts_with("/$defs/") && !inner.starts_with("/definitions/"));
        });
    }
    found
}

/// Adds the types that the roots refer to, until none is missing.
fn load(types: &Types, roots: &mut BTreeMap<String, Value>) -> Result<(), SchemaFault> {
    let mut open: Vec<String> = roots.keys().cloned().collect();
    let mut total = 0_usize;
    while let Some(name) = open.pop() {
        let mut wanted = BTreeSet::new();
        if let Some(root) = roots.get(&name) {
            references(root, "", &mut |_, reference| {
                total += 1;
                if let Some(id) = reference.strip_prefix(gts::SCHEME) {
                    wanted.insert(id.split('#').next().unwrap_or(id).to_owned());
                }
            });
        }
        if total > ALL_REFERENCES_MAX {
            let message = format!("a schema and its types have at most {ALL_REFERENCES_MAX} references");
            return Err(SchemaFault::new("", message));
        }
        for id in wanted {
            if roots.contains_key(&id) {
                continue;
            }
            if roots.len() > TYPES_MAX {
                return Err(SchemaFault::new("", format!("a schema reaches at most {TYPES_MAX} types")));
            }
            let Some(found) = types.get(&id) else {
                return Err(SchemaFault::new("", format!("no type `{id}` is registered")));
            };
            places(&found)?;
            roots.insert(id.clone(), found);
            open.push(id);
        }
    }
    Ok(())
}

/// Refuses a schema whose places would take too much room.
fn places(schema: &Value) -> Result<(), SchemaFault> {
    fn sum(schema: &Value, length: usize, total: &mut usize) {
        *total = total.saturating_add(length);
        if *total > PLACES_BYTES_MAX {
            return;
        }
        match schema {
            Value::Object(members) => {
                let schemas = members.iter().filter(|(name, _)| !DATA.contains(&name.as_str()));
                schemas.for_each(|(name, value)| sum(value, length + name.len() + 1, total));
            }
            Value::Array(items) => items.iter().for_each(|item| sum(item, length + 6, total)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut total = 0;
    sum(schema, 0, &mut total);
    match total > PLACES_BYTES_MAX {
        true => Err(SchemaFault::new("", "its names are too long for how much is inside of them")),
        false => Ok(()),
    }
}

/// Whether some place may be of one form or another.
pub(super) fn has_alternatives(roots: &BTreeMap<String, Value>) -> bool {
    fn has(schema: &Value) -> bool {
        match schema {
            Value::Object(members) => {
                members.contains_key("anyOf") || members.contains_key("oneOf") || members.values().any(has)
            }
            Value::Array(items) => items.iter().any(has),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    roots.values().any(has)
}

/// Calls with the place and the text of every reference.
pub(super) fn references(schema: &Value, pointer: &str, found: &mut impl FnMut(&str, &str)) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("$ref" | "$dynamicRef", Value::String(reference)) => found(pointer, reference),
                    (name, _) if DATA.contains(&name) => {}
                    _ => references(value, &join(pointer, name), found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                references(item, &format!("{pointer}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a reference in a root leads to.
pub(super) fn resolve<'a>(
    roots: &'a BTreeMap<String, Value>,
    root: &str,
    reference: &str,
) -> Option<(Place, &'a Value)> {
    let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let target = base.strip_prefix(gts::SCHEME).or_else(|| base.is_empty().then_some(root))?;
    let document = roots.get(target)?;
    let fragment = unescaped(fragment)?;
    let at = if fragment.is_empty() || fragment.starts_with('/') { fragment } else { anchor(document, "", &fragment)? };
    let inner = document.pointer(&at)?;
    Some(((target.to_owned(), at), inner))
}

/// A fragment is part of an address, where characters stand as `%` and two hex digits. `None` for what is no text.
fn unescaped(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = if *first == b'%' { more.get(..2) } else { None };
        let value = escaped.and_then(|digits| {
            let [high, low] = [digits.first()?, digits.get(1)?].map(|digit| char::from(*digit).to_digit(16));
            u8::try_from(high? * 16 + low?).ok()
        });
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { more.get(2..)? } else { more };
    }
    String::from_utf8(bytes).ok()
}

/// How many schemas apply where one does.
struct Cost<'a> {
    roots: &'a BTreeMap<String, Value>,
    known: BTreeMap<Place, u64>,
    open: BTreeSet<Place>,
}

impl<'a> Cost<'a> {
    /// Of every schema in a root, whether something refers to it or not.
    fn everywhere(&mut self, root: &str, pointer: &str, schema: &'a Value) -> Result<(), SchemaFault> {
        match schema {
            Value::Object(members) => {
                if !pointer.is_empty() && members.get("$id").is_some_and(Value::is_string) {
                    return Err(SchemaFault::new(pointer, "`$id` stands at the top of a schema or nowhere"));
                }
                self.of(root, pointer, schema)?;
                for (name, value) in members.iter().filter(|(name, _)| !DATA.contains(&name.as_str())) {
                    self.everywhere(root, &join(pointer, name), value)?;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.everywhere(root, &format!("{pointer}/{index}"), item)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn of(&mut self, root: &str, pointer: &str, schema: &'a Value) -> Result<u64, SchemaFault> {
        let place = (root.to_owned(), pointer.to_owned());
        if let Some(cost) = self.known.get(&place) {
            return Ok(*cost);
        }
        if !self.open.insert(place.clone()) {
            return Err(SchemaFault::new(pointer, "the schema refers to itself without going into the document"));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(SchemaFault::new(pointer, format!("references go at most {DEPTH_MAX} schemas deep")));
        }
        let mut cost = 1_u64;
        for name in IN_PLACE {
            if let Some(inner) = schema.get(name) {
                cost = cost.saturating_add(self.of(root, &join(pointer, name), inner)?);
            }
        }
        for name in IN_PLACE_LISTS {
            for (index, inner) in schema.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
                cost = cost.saturating_add(self.of(root, &format!("{pointer}/{name}/{index}"), inner)?);
            }
        }
        for (key, inner) in schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            let at = join(&join(pointer, "dependentSchemas"), key);
            cost = cost.saturating_add(self.of(root, &at, inner)?);
        }
        // Each is tried on the name of each member.
        let patterns = schema.get("patternProperties").and_then(Value::as_object).map_or(0, serde_json::Map::len);
        cost = cost.saturating_add(patterns as u64);
        for name in ["$ref", "$dynamicRef"] {
            if let Some(reference) = schema.get(name).and_then(Value::as_str) {
                cost = cost.saturating_add(self.referred(root, pointer, reference)?);
            }
        }
        self.open.remove(&place);
        if cost > EXPANSION_MAX {
            return Err(SchemaFault::new(
                pointer,
                format!("more than {EXPANSION_MAX} schemas would apply to one place; repeat fewer references"),
            ));
        }
        self.known.insert(place, cost);
        Ok(cost)
    }

    fn referred(&mut self, root: &str, pointer: &str, reference: &str) -> Result<u64, SchemaFault> {
        match resolve(self.roots, root, reference) {
            Some(((name, at), inner)) => self.of(&name, &at, inner),
            None if reference.starts_with('#') || reference.starts_with(gts::SCHEME) => {
                Err(SchemaFault::new(pointer, format!("`{reference}` refers to nothing")))
            }
            None => {
                let message = format!("`{reference}`: references start with `#` or `{}`", gts::SCHEME);
                Err(SchemaFault::new(pointer, message))
            }
        }
    }
}

/// Where an anchor stands, as a pointer.
fn anchor(schema: &Value, pointer: &str, name: &str) -> Option<String> {
    match schema {
        Value::Object(members) => {
            let own = |keyword: &str| members.get(keyword).and_then(Value::as_str) == Some(name);
            if own("$anchor") || own("$dynamicAnchor") {
                return Some(pointer.to_owned());
            }
            members.iter().find_map(|(key, value)| anchor(value, &join(pointer, key), name))
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| anchor(item, &format!("{pointer}/{index}"), name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn join(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
