//! An entrypoint's schemas, ready to check params and results. Made once and kept with the entrypoint, so that a call does not
//! compile anything.

use serde_json::{Map, Value};
use servo_model::invocation::Failure;

use super::issue::{Place, tidy, unknown};
use super::{ISSUES_MAX, kinds};
use crate::schemas::{Schema, SchemaFault, Types};
use crate::types::{EntrypointSchema, EntrypointTraits, InvocationMode, ValidationError, ValidationIssue};

#[derive(Debug, Clone)]
pub struct CompiledEntrypoint {
    types: Types,
    params: Option<(Value, Schema)>,
    returns: Option<(Value, Schema)>,
}

impl CompiledEntrypoint {
    pub(super) fn new(types: Types, params: Option<(Value, Schema)>, returns: Option<(Value, Schema)>) -> Self {
        Self { types, params, returns }
    }

    /// Of a definition that is registered.
    pub fn compile(types: &Types, schema: &EntrypointSchema) -> Result<Self, SchemaFault> {
        let compile = |schema: &Value| match schema {
            Value::Null => Ok(None),
            schema => Ok(Some((schema.clone(), types.compile(schema)?))),
        };
        Ok(Self { types: types.clone(), params: compile(&schema.params)?, returns: compile(&schema.returns)? })
    }

    /// The params that a run is started with, or all that is wrong with them.
    pub fn check_params(&self, params: Option<&Value>) -> Result<Map<String, Value>, Failure> {
        const PATH: &str = "$.params";
        let mut issues = Vec::new();
        let empty = Value::Object(Map::new());
        let params = match params {
            None => &empty,
            Some(Value::Null) if self.params.is_none() => &empty,
            Some(params) => params,
        };
        let Some(object) = params.as_object() else {
            let issue = ValidationIssue::new(kinds::SCHEMA_MISMATCH, PATH, "the params are a JSON object");
            return Err(ValidationError::new(vec![issue]).into());
        };
        match &self.params {
            None => issues.extend(object.keys().take(ISSUES_MAX).map(|name| unknown(PATH, name, []))),
            // A quick look first: most params are right, and naming faults costs more.
            Some((_, validator)) if validator.is_valid(params) => {}
            Some((schema, validator)) => {
                Place { types: &self.types, schema, document: params, base: PATH }.collect(validator, &mut issues);
            }
        }
        if issues.is_empty() { Ok(object.clone()) } else { Err(ValidationError::new(tidy(issues)).into()) }
    }

    /// How a run failed whose handler answered something else than JSON.
    pub fn no_json(error: &serde_json::Error) -> Failure {
        let message = format!("the result is no JSON: {error}");
        ValidationError::new(vec![ValidationIssue::new(kinds::INVALID_FORMAT, "$.result", message)]).into()
    }

    /// The result that a run records, or how it failed by it. An entrypoint that declares no output has none, whatever its
    /// code returns.
    pub fn check_result(&self, result: Value) -> Result<Value, Failure> {
        const PATH: &str = "$.result";
        let mut issues = Vec::new();
        if !result.is_object() && !result.is_null() {
            issues.push(ValidationIssue::new(kinds::SCHEMA_MISMATCH, PATH, "a result is a JSON object or null"));
        }
        match &self.returns {
            None if issues.is_empty() => return Ok(Value::Null),
            None => {}
            Some((_, validator)) if validator.is_valid(&result) => {}
            Some((schema, validator)) => {
                Place { types: &self.types, schema, document: &result, base: PATH }.collect(validator, &mut issues);
            }
        }
        if issues.is_empty() { Ok(result) } else { Err(ValidationError::new(tidy(issues)).into()) }
    }
}

/// The mode that a run starts in.
pub fn mode(traits: &EntrypointTraits, asked: Option<InvocationMode>) -> Result<InvocationMode, Failure> {
    let mode = asked.unwrap_or(traits.default_invocation);
    if traits.supported_invocations.contains(&mode) {
        return Ok(mode);
    }
    let supported: Vec<_> = traits.supported_invocations.iter().map(|mode| mode.as_str()).collect();
    let message = format!("the entrypoint cannot be called `{}`", mode.as_str());
    let issue = ValidationIssue::new(kinds::INVALID_VALUE, "$.mode", message)
        .suggest(format!("use one of: {}", supported.join(", ")));
    Err(ValidationError::new(vec![issue]).into())
}
