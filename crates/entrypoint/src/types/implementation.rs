//! What an entrypoint runs, and the adapter that runs it.

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::GtsId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImplementationKind {
    Code,
    WorkflowSpec,
    AdapterRef,
}

impl ImplementationKind {
    pub const ALL: [ImplementationKind; 3] =
        [ImplementationKind::Code, ImplementationKind::WorkflowSpec, ImplementationKind::AdapterRef];

    /// Also the name of the member that holds the payload.
    pub fn as_str(self) -> &'static str {
        match self {
            ImplementationKind::Code => "code",
            ImplementationKind::WorkflowSpec => "workflow_spec",
            ImplementationKind::AdapterRef => "adapter_ref",
        }
    }
}

/// In JSON `kind` and a member of that name stand beside `adapter`.
#[derive(Debug, Clone, PartialEq)]
pub struct EntrypointImplementation {
    pub adapter: GtsId,
    pub payload: ImplementationPayload,
}

impl EntrypointImplementation {
    /// Follows from the payload, so that the two cannot disagree.
    pub fn kind(&self) -> ImplementationKind {
        match self.payload {
            ImplementationPayload::Code { .. } => ImplementationKind::Code,
            ImplementationPayload::WorkflowSpec { .. } => ImplementationKind::WorkflowSpec,
            ImplementationPayload::AdapterRef { .. } => ImplementationKind::AdapterRef,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ImplementationPayload {
    Code { language: String, source: String },
    WorkflowSpec { format: String, spec: Value },
    AdapterRef { definition_id: String },
}

#[derive(Serialize, Deserialize)]
struct Code {
    language: String,
    source: String,
}

#[derive(Serialize, Deserialize)]
struct WorkflowSpec {
    format: String,
    spec: Value,
}

#[derive(Serialize, Deserialize)]
struct AdapterRef {
    definition_id: String,
}

#[derive(Deserialize)]
struct Wire {
    adapter: GtsId,
    kind: ImplementationKind,
    code: Option<Code>,
    workflow_spec: Option<WorkflowSpec>,
    adapter_ref: Option<AdapterRef>,
}

impl Serialize for EntrypointImplementation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("adapter", &self.adapter)?;
        map.serialize_entry("kind", &self.kind())?;
        let name = self.kind().as_str();
        match &self.payload {
            ImplementationPayload::Code { language, source } => {
                map.serialize_entry(name, &Code { language: language.clone(), source: source.clone() })?;
            }
            ImplementationPayload::WorkflowSpec { format, spec } => {
                map.serialize_entry(name, &WorkflowSpec { format: format.clone(), spec: spec.clone() })?;
            }
            ImplementationPayload::AdapterRef { definition_id } => {
                map.serialize_entry(name, &AdapterRef { definition_id: definition_id.clone() })?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for EntrypointImplementation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let payload = match wire.kind {
            ImplementationKind::Code => {
                wire.code.map(|code| ImplementationPayload::Code { language: code.language, source: code.source })
            }
            ImplementationKind::WorkflowSpec => wire
                .workflow_spec
                .map(|workflow| ImplementationPayload::WorkflowSpec { format: workflow.format, spec: workflow.spec }),
            ImplementationKind::AdapterRef => wire
                .adapter_ref
                .map(|reference| ImplementationPayload::AdapterRef { definition_id: reference.definition_id }),
        };
        let payload = payload.ok_or_else(|| D::Error::missing_field(wire.kind.as_str()))?;
        Ok(Self { adapter: wire.adapter, payload })
    }
}
