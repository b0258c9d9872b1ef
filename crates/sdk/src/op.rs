//! One operation at its call site: its id, what it is, and the ways in which all kinds of operations use the state.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::{ErrorObject, OperationAction, OperationStatus, OperationType};
use servo_replay::{Identity, Operation, SubType};
use servo_wire::lambda::OperationUpdate;

use crate::serdes::{self, SerDesContext, ValueSerDes};
use crate::state::{ExecutionState, Stop, Until, Want};
use crate::{CheckpointingMode, DurableError};

/// What the service takes for one operation.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
const NAME_LEN_MAX: usize = 256;

#[derive(Clone)]
pub(crate) struct Op {
    pub(crate) state: Arc<ExecutionState>,
    pub(crate) id: String,
    pub(crate) identity: Identity,
}

impl Op {
    pub(crate) fn new(
        state: Arc<ExecutionState>,
        id: String,
        parent: Option<&str>,
        (operation_type, sub_type): (OperationType, SubType),
        name: Option<&str>,
    ) -> Self {
        Self { state, id, identity: Identity::new(operation_type, sub_type, name, parent) }
    }

    pub(crate) fn span(&self) -> tracing::Span {
        tracing::info_span!(
            "durable.operation",
            operationId = %self.id,
            operationType = self.identity.operation_type.as_str(),
            operationSubType = self.identity.sub_type.as_deref(),
            operationName = self.identity.name.as_deref(),
            parentId = self.identity.parent_id.as_deref(),
        )
    }

    /// What is recorded. A program that has diverged goes no further than this.
    pub(crate) async fn begin(&self) -> Result<Option<Arc<Operation>>, DurableError> {
        if let Some(name) = &self.identity.name {
            check_name(name)?;
        }
        let recorded = match self.state.lookup(&self.id, &self.identity) {
            Ok(recorded) => recorded,
            Err(divergence) => return Err(self.state.terminate(Stop::Fail(divergence.into())).await),
        };
        self.report(recorded.as_deref());
        Ok(recorded)
    }

    /// Tells plugins that the operation is there, and that it is over if the record says so.
    fn report(&self, recorded: Option<&Operation>) {
        if self.state.options().plugins.is_empty() {
            return;
        }
        let mut info = self.info();
        let finished = recorded.is_some_and(|operation| operation.status.is_terminal());
        info.is_replay = finished;
        info.status = recorded.map(|operation| operation.status);
        self.state.hook("on_operation_start", |plugin| plugin.on_operation_start(&info));
        if let Some(recorded) = recorded.filter(|_| finished) {
            let (result, error) = recorded.outcome();
            (info.result, info.error) = (result.map(str::to_owned), error.cloned());
            self.state.hook("on_operation_end", |plugin| plugin.on_operation_end(&info));
        }
    }

    fn info(&self) -> crate::plugin::OperationInfo {
        crate::plugin::OperationInfo {
            durable_execution_arn: self.state.arn().to_owned(),
            operation_id: self.id.clone(),
            operation_type: self.identity.operation_type,
            sub_type: self.identity.sub_type.clone(),
            name: self.identity.name.clone(),
            parent_id: self.identity.parent_id.clone(),
            status: None,
            is_replay: false,
            result: None,
            error: None,
        }
    }

    /// Tells plugins of an outcome that was reached just now.
    pub(crate) fn ended(&self, status: OperationStatus, result: Option<&str>, error: Option<&ErrorObject>) {
        if self.state.options().plugins.is_empty() {
            return;
        }
        let mut info = self.info();
        info.status = Some(status);
        (info.result, info.error) = (result.map(str::to_owned), error.cloned());
        self.state.hook("on_operation_end", |plugin| plugin.on_operation_end(&info));
    }

    pub(crate) fn update(&self, action: OperationAction) -> OperationUpdate {
        OperationUpdate {
            parent_id: self.identity.parent_id.clone(),
            name: self.identity.name.clone(),
            sub_type: self.identity.sub_type.clone(),
            ..OperationUpdate::new(self.id.clone(), self.identity.operation_type, action)
        }
    }

    /// Puts an update in line and does not wait for it.
    pub(crate) fn send(&self, update: OperationUpdate, awaited: bool) -> Result<u64, DurableError> {
        self.state.enqueue(update, awaited)
    }

    /// Returns once the service has the update.
    pub(crate) async fn record(&self, update: OperationUpdate) -> Result<(), DurableError> {
        let ticket = self.send(update, true)?;
        self.state.wait(Want::Recorded(ticket)).await
    }

    /// The same for an outcome, which the optimistic mode does not wait for.
    pub(crate) async fn record_outcome(&self, update: OperationUpdate) -> Result<(), DurableError> {
        if self.state.mode() == CheckpointingMode::Optimistic {
            self.send(update, false)?;
            return Ok(());
        }
        self.record(update).await
    }

    /// Parks until the service says that the operation has come so far.
    pub(crate) async fn until(&self, until: Until) -> Result<Arc<Operation>, DurableError> {
        self.state.wait(Want::Operation { id: self.id.clone(), until }).await?;
        match self.state.get(&self.id) {
            Some(operation) => Ok(operation),
            // Only what is recorded can have come anywhere.
            None => Err(DurableError::Suspend { scheduled_timestamp: None }),
        }
    }

    pub(crate) fn serdes_context(&self) -> SerDesContext {
        SerDesContext { operation_id: self.id.clone(), durable_execution_arn: self.state.arn().to_owned() }
    }

    pub(crate) fn write<T: Serialize>(&self, value: &T, serdes: Option<&ValueSerDes>) -> Result<String, DurableError> {
        serdes::write(value, serdes, &self.serdes_context())
    }

    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        data: Option<&str>,
        serdes: Option<&ValueSerDes>,
    ) -> Result<T, DurableError> {
        serdes::read_with(data, serdes, &self.serdes_context())
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), DurableError> {
    let printable = name.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    if printable && (1..=NAME_LEN_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(DurableError::validation(format!(
        "{name:?} is no name for an operation; give 1 to {NAME_LEN_MAX} printable ASCII characters"
    )))
}

pub(crate) fn check_size(what: &str, text: &str) -> Result<(), DurableError> {
    if text.len() <= PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    Err(DurableError::SizeLimit {
        message: format!(
            "{what} has {} bytes, at most {PAYLOAD_BYTES_MAX} can be recorded; store it elsewhere and return a reference",
            text.len()
        ),
    })
}

/// The recorded error of an operation that did not succeed.
pub(crate) fn error_of(operation: &Operation) -> DurableError {
    match operation.outcome().1 {
        Some(error) => DurableError::from_error_object(error),
        None => {
            let name = operation.name.as_deref().unwrap_or(&operation.id);
            let message =
                format!("{} {name:?} ended as {}", operation.operation_type.as_str(), operation.status.as_str());
            DurableError::user(format!("Operation.{}", operation.status.as_str()), message)
        }
    }
}
