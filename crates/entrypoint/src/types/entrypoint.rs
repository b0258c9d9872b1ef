//! What is registered: an entrypoint's definition, who owns it, and where it is in its life.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::Timestamp;

use super::{EntrypointId, EntrypointImplementation, EntrypointTraits, EntrypointType, GtsId, TenantId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionStatus {
    #[default]
    Draft,
    Active,
    Deprecated,
    Disabled,
    Archived,
}

impl DefinitionStatus {
    pub const ALL: [DefinitionStatus; 5] = [
        DefinitionStatus::Draft,
        DefinitionStatus::Active,
        DefinitionStatus::Deprecated,
        DefinitionStatus::Disabled,
        DefinitionStatus::Archived,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            DefinitionStatus::Draft => "draft",
            DefinitionStatus::Active => "active",
            DefinitionStatus::Deprecated => "deprecated",
            DefinitionStatus::Disabled => "disabled",
            DefinitionStatus::Archived => "archived",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Actions that move an entrypoint through its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntrypointStatusAction {
    /// Still callable, but discouraged.
    Deprecate,
    /// Not callable; can be enabled again.
    Disable,
    Enable,
    /// A draft becomes callable, and is never edited again.
    Activate,
    /// Kept as history.
    Archive,
}

impl EntrypointStatusAction {
    pub const ALL: [EntrypointStatusAction; 5] = [
        EntrypointStatusAction::Deprecate,
        EntrypointStatusAction::Disable,
        EntrypointStatusAction::Enable,
        EntrypointStatusAction::Activate,
        EntrypointStatusAction::Archive,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EntrypointStatusAction::Deprecate => "deprecate",
            EntrypointStatusAction::Disable => "disable",
            EntrypointStatusAction::Enable => "enable",
            EntrypointStatusAction::Activate => "activate",
            EntrypointStatusAction::Archive => "archive",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

/// Who sees an entrypoint by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerType {
    /// The owning user alone.
    User,
    /// Authorised users of the tenant.
    Tenant,
    /// Everybody; managed by the platform.
    System,
}

impl OwnerType {
    pub const ALL: [OwnerType; 3] = [OwnerType::User, OwnerType::Tenant, OwnerType::System];

    pub fn as_str(self) -> &'static str {
        match self {
            OwnerType::User => "user",
            OwnerType::Tenant => "tenant",
            OwnerType::System => "system",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|owner| owner.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRef {
    pub owner_type: OwnerType,
    pub id: String,
    pub tenant_id: TenantId,
}

/// What goes in and comes out. `null` is nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EntrypointSchema {
    #[serde(default)]
    pub params: Value,
    #[serde(default)]
    pub returns: Value,
    #[serde(default)]
    pub errors: Vec<GtsId>,
}

/// A definition. Its identity is its address, which stands beside it in [`Entrypoint`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntrypointDefinition {
    pub version: String,
    pub tenant_id: TenantId,
    pub owner: OwnerRef,
    #[serde(default)]
    pub status: DefinitionStatus,
    #[serde(default)]
    pub tags: Vec<String>,
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub schema: EntrypointSchema,
    pub traits: EntrypointTraits,
    pub implementation: EntrypointImplementation,
    /// Kept by the registry; absent while a definition is only validated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Members that the schema does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A definition with its address, as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entrypoint {
    /// The opaque id of the registration (`ep_…`); absent until there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub entrypoint_id: EntrypointId,
    #[serde(flatten)]
    pub definition: EntrypointDefinition,
}

impl Entrypoint {
    /// Computed from the address, never stored.
    pub fn entrypoint_type(&self) -> Option<EntrypointType> {
        EntrypointType::from_gts_id(&self.entrypoint_id)
    }
}
