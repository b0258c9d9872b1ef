//! What a schema says is wrong, in words that name the place and the way out.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;
use servo_model::limits::clip;

use super::suggest::nearest;
use super::{ISSUES_MAX, kinds};
use crate::schemas::{Properties, Schema, Types, keyword};
use crate::types::ValidationIssue;

/// Words of a list that a suggestion names, and how much of it.
const LISTED_MAX: usize = 100;
const LISTED_BYTES_MAX: usize = 2 * 1024;
/// Allowed words that are looked at for the one that was meant.
const WORDS_MAX: usize = 200;

/// A document, the schema it is checked against, and where it is inside the whole (`$.traits.limits`).
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) types: &'a Types,
    pub(super) schema: &'a Value,
    pub(super) document: &'a Value,
    pub(super) base: &'a str,
}

impl Place<'_> {
    pub(super) fn collect(&self, schema: &Schema, issues: &mut Vec<ValidationIssue>) {
        match schema.faults(self.document, ISSUES_MAX) {
            Some(errors) => {
                let enough = issues.len() + ISSUES_MAX;
                for error in &errors {
                    self.push(error, issues);
                    if issues.len() >= enough {
                        break;
                    }
                }
            }
            None if !schema.can_be_checked(self.document) => {
                let message = "has too many parts for a schema that checks each of them in so many ways";
                let issue = ValidationIssue::new(kinds::LIMIT_EXCEEDED, self.base, message);
                issues.push(
                    issue.suggest("send less at a time, or have the schema offer fewer alternatives inside of lists"),
                );
            }
            None => {
                let message = "does not match its schema; it is too large or nested too deeply to say where";
                issues.push(ValidationIssue::new(kinds::SCHEMA_MISMATCH, self.base, message));
            }
        }
    }

    fn push(&self, error: &ValidationError<'_>, issues: &mut Vec<ValidationIssue>) {
        let path = path(self.base, error.instance_path());
        let message = clip(&error.masked().to_string()).to_owned();
        let issue = |kind: &str| ValidationIssue::new(kind, &path, &message);
        match error.kind() {
            Kind::Required { property } => issues.push(self.missing(error, &path, property.as_str().unwrap_or("?"))),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.properties(error.instance_path());
                issues.extend(unexpected.iter().take(ISSUES_MAX).map(|name| unknown(&path, name, known.names())));
            }
            Kind::Enum { options } => {
                let words = options.as_array().map_or(&[][..], Vec::as_slice);
                issues.push(choice(&path, words.iter(), self.at(error.instance_path())));
            }
            Kind::Constant { expected_value } => {
                issues.push(choice(&path, std::iter::once(&**expected_value), self.at(error.instance_path())));
            }
            Kind::Pattern { .. } | Kind::Format { .. } => issues.push(issue(kinds::INVALID_FORMAT)),
            Kind::Custom { keyword, message } if keyword == "uniqueItems" => {
                issues.push(ValidationIssue::new(kinds::SCHEMA_MISMATCH, &path, message));
            }
            Kind::Custom { message, .. } => {
                issues.push(ValidationIssue::new(kinds::INVALID_FORMAT, &path, message));
            }
            Kind::OneOfNotValid { context } | Kind::AnyOf { context } => self.alternatives(error, context, issues),
            _ => issues.push(issue(kinds::SCHEMA_MISMATCH)),
        }
    }

    /// Reports what is wrong with the one alternative that was meant, if that can be told.
    fn alternatives(
        &self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        issues: &mut Vec<ValidationIssue>,
    ) {
        let own = error.instance_path();
        let is_other = |error: &ValidationError<'_>| match error.kind() {
            Kind::Type { .. } => error.instance_path() == own,
            Kind::Constant { .. } => true,
            _ => false,
        };
        let mut meant: Vec<_> = context.iter().filter(|errors| !errors.iter().any(is_other)).collect();
        let fewest = meant.iter().map(|errors| errors.len()).min();
        meant.retain(|errors| Some(errors.len()) == fewest);
        if let [only] = meant.as_slice() {
            return only.iter().for_each(|error| self.push(error, issues));
        }
        // The alternatives are told apart by one word, and that one is wrong: say which words there are.
        let words: Vec<_> = context
            .iter()
            .flatten()
            .filter_map(|error| match error.kind() {
                Kind::Constant { expected_value } => Some((error.instance_path(), &**expected_value)),
                _ => None,
            })
            .collect();
        if let Some((at, _)) = words.first()
            && meant.is_empty()
            && words.iter().all(|(other, _)| other == at)
        {
            issues.push(choice(&path(self.base, at), words.iter().map(|(_, word)| *word), self.at(at)));
            return;
        }
        // A word that is missing altogether is the same in all alternatives.
        let shared = context.first().and_then(|first| {
            first.iter().find(|error| {
                matches!(error.kind(), Kind::Required { property }
                    if context.iter().all(|errors| errors.iter().any(|other| requires(other, property))))
            })
        });
        if let Some(error) = shared {
            return self.push(error, issues);
        }
        let types: Vec<_> =
            context.iter().flatten().filter(|error| error.instance_path() == own).filter_map(type_name).collect();
        let message = if types.is_empty() {
            "the value matches none of the allowed forms".to_owned()
        } else {
            format!("the value is {}", types.join(" or "))
        };
        issues.push(ValidationIssue::new(kinds::SCHEMA_MISMATCH, path(self.base, own), message));
    }

    fn missing(&self, error: &ValidationError<'_>, parent: &str, name: &str) -> ValidationIssue {
        let properties = self.properties(error.instance_path());
        let issue =
            ValidationIssue::new(kinds::MISSING_FIELD, join(parent, name), format!("the field `{name}` is required"));
        let present = self.at(error.instance_path()).and_then(Value::as_object);
        let strangers = present.into_iter().flatten().map(|(name, _)| name.as_str());
        if let Some(misspelt) = nearest(name, strangers.filter(|name| properties.get(name).is_none())) {
            return issue.suggest(format!("`{misspelt}` is not known here; did you mean `{name}`?"));
        }
        match properties.get(name).and_then(|schema| keyword(self.types, schema, "default")) {
            Some(default) => issue.suggest(format!("add `\"{name}\": {default}`, which is the default")),
            None => issue.suggest(format!("add `{name}`")),
        }
    }

    /// What the schema says about the members of the object at a place.
    fn properties(&self, at: &Location) -> Properties {
        let mut schema = self.schema.clone();
        for segment in at.segments() {
            let inner = match segment {
                LocationSegment::Property(name) => Properties::of(self.types, &schema).get(&name).cloned(),
                LocationSegment::Index(_) => keyword(self.types, &schema, "items"),
            };
            match inner {
                Some(inner) => schema = inner,
                None => return Properties::default(),
            }
        }
        Properties::of(self.types, &schema)
    }

    fn at(&self, at: &Location) -> Option<&Value> {
        self.document.pointer(at.as_str())
    }
}

fn requires(error: &ValidationError<'_>, name: &Value) -> bool {
    matches!(error.kind(), Kind::Required { property } if property == name)
}

fn type_name(error: &ValidationError<'_>) -> Option<String> {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(one) } => Some(format!("`{one}`")),
        _ => None,
    }
}

/// A member that nobody knows.
pub(super) fn unknown<'a>(
    parent: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> ValidationIssue {
    let message = format!("there is no field `{}` here", clip(name));
    let issue = ValidationIssue::new(kinds::UNKNOWN_FIELD, join(parent, name), message);
    match nearest(name, known.clone()) {
        Some(meant) => issue.suggest(format!("did you mean `{meant}`?")),
        None => {
            let known = listed(known.into_iter().map(str::to_owned));
            issue.suggest(if known.is_empty() { "leave it out".to_owned() } else { format!("known are: {known}") })
        }
    }
}

/// Words for people to read, and no more than they would: a schema may have many thousands, and an answer a hundred such lists.
fn listed(words: impl Iterator<Item = String>) -> String {
    let mut words = words.peekable();
    let mut text = words.by_ref().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
    if text.len() > LISTED_BYTES_MAX {
        text.truncate(text.floor_char_boundary(LISTED_BYTES_MAX));
        text.push('…');
    } else if words.peek().is_some() {
        text.push_str(", …");
    }
    text
}

/// A word that is none of the allowed ones.
pub(super) fn choice<'a>(path: &str, words: impl Iterator<Item = &'a Value>, found: Option<&Value>) -> ValidationIssue {
    let words: Vec<String> =
        words.take(WORDS_MAX).map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
    let list = listed(words.iter().cloned());
    let issue = ValidationIssue::new(kinds::INVALID_VALUE, path, format!("the value is one of: {list}"));
    match found.and_then(Value::as_str).and_then(|found| nearest(found, words.iter().map(String::as_str))) {
        Some(meant) => issue.suggest(format!("did you mean `{meant}`? Valid values: {list}")),
        None => issue.suggest(format!("use one of: {list}")),
    }
}

/// `$.traits.limits`, `$.tags[0]`, `$['odd name']`.
fn path(base: &str, at: &Location) -> String {
    at.segments().fold(base.to_owned(), |path, segment| match segment {
        LocationSegment::Property(name) => join(&path, &name),
        LocationSegment::Index(index) => format!("{path}[{index}]"),
    })
}

pub(super) fn join(path: &str, name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    let name = clip(name);
    if plain {
        format!("{path}.{name}")
    } else {
        format!("{path}['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

/// In the order of their places, each once, and not too many.
pub(super) fn tidy(mut issues: Vec<ValidationIssue>) -> Vec<ValidationIssue> {
    issues.sort_by(|left, right| {
        let key =
            |issue: &ValidationIssue| (issue.location.path.clone(), issue.error_type.clone(), issue.location.line);
        key(left).cmp(&key(right))
    });
    issues.dedup_by(|next, kept| {
        next.location == kept.location && next.error_type == kept.error_type && next.error_type != kinds::SYNTAX_ERROR
    });
    issues.truncate(ISSUES_MAX);
    for issue in &mut issues {
        let texts = [&mut issue.location.path, &mut issue.message].into_iter().chain(&mut issue.suggestion);
        texts.for_each(|text| text.truncate(clip(text).len()));
    }
    issues
}
