//! What a step leaves behind: references to artifacts, never their bytes, and the shape of a failure.

use serde::{Deserialize, Serialize};
use servo_canon::Digest;

use crate::limits::{ARTIFACTS_PER_STEP_MAX, INTEGER_MAX, LABEL_CHARS_MAX, TEXT_CHARS_MAX, URI_CHARS_MAX, clip, fits};
use crate::{Invalid, Timestamp, integer};

/// A pointer to an artifact. `data:` URIs are refused, because they would carry the bytes into the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactRef {
    pub uri: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer::some_u64")]
    pub size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl ArtifactRef {
    pub fn check(&self) -> Result<(), Invalid> {
        check_uri(&self.uri).map_err(|e| e.inside("uri"))?;
        check_label("kind", &self.kind)?;
        if self.size_bytes.is_some_and(|size| size > INTEGER_MAX) {
            return Err(Invalid::new("sizeBytes", format!("is at most {INTEGER_MAX}")));
        }
        Ok(())
    }
}

fn check_label(field: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() || !fits(text, LABEL_CHARS_MAX) {
        return Err(Invalid::new(field, format!("has 1 to {LABEL_CHARS_MAX} characters")));
    }
    Ok(())
}

/// A URI with a scheme and no bytes inside it.
pub fn check_uri(uri: &str) -> Result<(), Invalid> {
    if uri.is_empty() || !fits(uri, URI_CHARS_MAX) {
        return Err(Invalid::new("", format!("has 1 to {URI_CHARS_MAX} characters")));
    }
    let Some((scheme, _)) = uri.split_once(':') else {
        return Err(Invalid::new("", "has no scheme such as s3: or file:"));
    };
    let mut letters = scheme.bytes();
    if !letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        || !letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    {
        return Err(Invalid::new("", "has no scheme such as s3: or file:"));
    }
    if scheme.eq_ignore_ascii_case("data") {
        return Err(Invalid::new("", "is a data: URI; store the artifact elsewhere and refer to it"));
    }
    Ok(())
}

pub fn check_artifacts(artifacts: &[ArtifactRef]) -> Result<(), Invalid> {
    if artifacts.len() > ARTIFACTS_PER_STEP_MAX {
        return Err(Invalid::new("", format!("at most {ARTIFACTS_PER_STEP_MAX} artifacts")));
    }
    for (index, artifact) in artifacts.iter().enumerate() {
        artifact.check().map_err(|e| e.inside(&index.to_string()))?;
    }
    Ok(())
}

/// Why a step failed. `category` groups codes for people and policies; `retryable` is the step's own opinion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub retryable: bool,
}

impl StepError {
    pub fn new(code: &str, message: &str, retryable: bool) -> Self {
        Self { category: None, code: code.to_owned(), message: clip(message).to_owned(), retryable }
    }

    pub fn check(&self) -> Result<(), Invalid> {
        check_label("code", &self.code)?;
        if !fits(&self.message, TEXT_CHARS_MAX) {
            return Err(Invalid::new("message", format!("has at most {TEXT_CHARS_MAX} characters")));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum OutputStatus {
    Success,
    Failed,
    Skipped,
}

/// The error a step reports: the code is optional there and filled in when the event is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputError {
    pub category: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// What an adapter reports about one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepOutput {
    pub status: OutputStatus,
    #[serde(default)]
    pub artifact_refs: Vec<ArtifactRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OutputError>,
}

impl From<OutputError> for StepError {
    fn from(error: OutputError) -> Self {
        Self {
            code: error.code.unwrap_or_else(|| error.category.clone()),
            category: Some(error.category),
            message: clip(&error.message).to_owned(),
            retryable: error.retryable.unwrap_or(false),
        }
    }
}

/// A reference to a secret: resolved where the step runs, never stored with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretRef {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
