//! What an operation is, apart from its outcome. A replay that asks for something else under a recorded id has diverged.

use std::fmt;

use servo_model::operation::OperationType;

use crate::{Operation, SubType};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub operation_type: OperationType,
    pub sub_type: Option<String>,
    pub name: Option<String>,
    pub parent_id: Option<String>,
}

impl Identity {
    pub fn new(operation_type: OperationType, sub_type: SubType, name: Option<&str>, parent: Option<&str>) -> Self {
        Self {
            operation_type,
            sub_type: Some(sub_type.as_str().to_owned()),
            name: name.map(str::to_owned),
            parent_id: parent.map(str::to_owned),
        }
    }

    pub fn of(operation: &Operation) -> Self {
        Self {
            operation_type: operation.operation_type,
            sub_type: operation.sub_type.clone(),
            name: operation.name.clone(),
            parent_id: operation.parent_id.clone(),
        }
    }

    /// Compares with what is recorded. A recorded operation without a subtype fits every subtype: the field is optional in
    /// the service's model, and its absence contradicts nothing.
    pub fn check(&self, recorded: &Operation) -> Result<(), Divergence> {
        let same_sub_type = recorded.sub_type.is_none() || recorded.sub_type == self.sub_type;
        let same = same_sub_type
            && recorded.operation_type == self.operation_type
            && recorded.name == self.name
            && recorded.parent_id == self.parent_id;
        if same {
            return Ok(());
        }
        Err(Divergence {
            operation_id: recorded.id.clone(),
            expected: Box::new(Identity::of(recorded)),
            actual: Box::new(self.clone()),
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation_type.as_str())?;
        if let Some(sub_type) = &self.sub_type {
            write!(f, "/{sub_type}")?;
        }
        match &self.name {
            Some(name) => write!(f, " {name:?}")?,
            None => write!(f, " without a name")?,
        }
        match &self.parent_id {
            Some(parent) => write!(f, " in context {parent}"),
            None => write!(f, " at the top level"),
        }
    }
}

/// The program asked for something else than it did before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "operation {operation_id} was recorded as {expected}, but the program now asks for {actual}; the code between \
     operations must do the same on every replay: take clocks, random numbers and outside data from steps, and give \
     changed code a new version"
)]
pub struct Divergence {
    pub operation_id: String,
    /// What the journal has.
    pub expected: Box<Identity>,
    /// What the program asked for.
    pub actual: Box<Identity>,
}
