//! Which command asks for which operation of the API.

pub(super) enum How {
    Command(&'static str),
    /// There is none, because.
    Without(&'static str),
}

use How::{Command, Without};

pub(super) fn command(id: &str) -> Option<&'static How> {
    ALL.iter().find(|row| row.0 == id).map(|row| &row.1)
}

pub(super) const ALL: &[(&str, How)] = &[
    ("getFront", Without("a page for browsers")),
    ("listEntrypoints", Command("entrypoints list")),
    ("registerEntrypoint", Command("entrypoints register")),
    ("deleteEntrypoint", Command("entrypoints delete")),
    ("getEntrypoint", Command("entrypoints get")),
    ("updateEntrypoint", Command("entrypoints update")),
    ("setEntrypointStatus", Command("entrypoints activate")),
    ("validateEntrypoint", Command("entrypoints validate")),
    ("listInvocations", Command("invocations list")),
    ("startInvocation", Command("invocations start")),
    ("getInvocation", Command("invocations get")),
    ("getInvocationTimeline", Command("invocations timeline")),
    ("controlInvocation", Command("invocations cancel")),
    ("signalInvocation", Command("invocations signal")),
    ("bulkControlInvocations", Command("invocations bulk")),
    ("countInvocations", Command("invocations counts")),
    ("listTypes", Command("types list")),
    ("getType", Command("types get")),
    ("getLiveness", Without("for supervisors; `servo doctor` asks more")),
    ("getMetrics", Command("metrics")),
    ("getOpenApi", Command("openapi")),
    ("getReadiness", Command("doctor")),
    ("executeRuntimeCommand", Command("runtime exec")),
    ("getRuntimeEvents", Command("runtime events")),
    ("getRuntimeSchema", Command("runtime schema")),
    ("getRuntimeSnapshot", Command("runtime snapshot")),
    ("getSeries", Without("for the console's charts; `servo metrics` has numbers for programs")),
    ("listAlerts", Command("alerts")),
    ("readAudit", Command("audit list")),
    ("openChannel", Without("for handlers; the SDK uses it by itself")),
    ("listDeadLetters", Command("dead-letters list")),
    ("redriveDeadLetters", Command("dead-letters redrive")),
    ("listFunctions", Command("functions list")),
    ("removeFunction", Command("functions remove")),
    ("getFunction", Command("functions show")),
    ("getFunctionVersion", Command("functions show")),
    ("registerFunction", Command("functions register")),
    ("removeAlias", Command("functions unalias")),
    ("putAlias", Command("functions alias")),
    ("listKeys", Command("keys list")),
    ("createKey", Command("keys create")),
    ("revokeKey", Command("keys revoke")),
    ("listRuns", Command("runs list")),
    ("startRun", Command("runs start")),
    ("importRun", Command("runs import")),
    ("deleteRun", Command("runs delete")),
    ("getRun", Command("runs get")),
    ("getRunEvents", Command("runs events")),
    ("exportRun", Command("runs export")),
    ("getRunLogs", Command("functions logs")),
    ("signalRun", Command("runs signal")),
    ("terminateRun", Command("runs terminate")),
    ("backupStore", Command("store backup")),
    ("getStoreInfo", Command("store info")),
    ("runRetention", Command("store retention")),
    ("verifyStore", Command("store verify")),
    ("whoAmI", Command("whoami")),
    ("getVersion", Command("version")),
];

/// The Lambda API is described by AWS, not by us.
pub(super) const LAMBDA: &[(&str, How)] = &[
    ("Invoke", Command("functions invoke")),
    ("ListDurableExecutionsByFunction", Command("executions list")),
    ("GetDurableExecution", Command("executions get")),
    ("GetDurableExecutionHistory", Command("executions history")),
    ("StopDurableExecution", Command("executions stop")),
    ("CheckpointDurableExecution", Without("for handlers, with their token")),
    ("GetDurableExecutionState", Without("for handlers, with their token")),
    ("SendDurableExecutionCallbackSuccess", Command("callbacks succeed")),
    ("SendDurableExecutionCallbackFailure", Command("callbacks fail")),
    ("SendDurableExecutionCallbackHeartbeat", Command("callbacks heartbeat")),
];
