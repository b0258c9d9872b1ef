//! Every operation there is. Add a row with every route.

pub(super) struct Operation {
    pub tag: &'static str,
    pub id: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    /// The lowest role that may; `None` is open to all.
    pub role: Option<&'static str>,
    pub summary: &'static str,
}

const fn op(
    tag: &'static str,
    id: &'static str,
    method: &'static str,
    path: &'static str,
    role: Option<&'static str>,
    summary: &'static str,
) -> Operation {
    Operation { tag, id, method, path, role, summary }
}

#[rustfmt::skip]
pub(super) const OPERATIONS: &[Operation] = &[
    op("entrypoints", "registerEntrypoint", "POST", "/api/serverless-runtime/v1/entrypoints", Some("developer"), "Register an entrypoint, or a new version of one, as a draft"),
    op("entrypoints", "listEntrypoints", "GET", "/api/serverless-runtime/v1/entrypoints", Some("viewer"), "List entrypoints, newest first unless ordered otherwise"),
    op("entrypoints", "validateEntrypoint", "POST", "/api/serverless-runtime/v1/entrypoints:validate", Some("developer"), "Check a definition without keeping it"),
    op("entrypoints", "getEntrypoint", "GET", "/api/serverless-runtime/v1/entrypoints/{id}", Some("viewer"), "Read an entrypoint"),
    op("entrypoints", "updateEntrypoint", "PUT", "/api/serverless-runtime/v1/entrypoints/{id}", Some("developer"), "Replace a draft"),
    op("entrypoints", "deleteEntrypoint", "DELETE", "/api/serverless-runtime/v1/entrypoints/{id}", Some("admin"), "Delete a draft, archive what is deprecated or disabled"),
    op("entrypoints", "setEntrypointStatus", "POST", "/api/serverless-runtime/v1/entrypoints/{id}:status", Some("developer"), "Activate, deprecate, disable, enable or archive an entrypoint"),
    op("invocations", "startInvocation", "POST", "/api/serverless-runtime/v1/invocations", Some("operator"), "Start an invocation, or only check whether it could start"),
    op("invocations", "listInvocations", "GET", "/api/serverless-runtime/v1/invocations", Some("viewer"), "List invocations, newest first unless ordered otherwise"),
    op("invocations", "countInvocations", "GET", "/api/serverless-runtime/v1/invocations:counts", Some("viewer"), "Count invocations by status"),
    op("invocations", "bulkControlInvocations", "POST", "/api/serverless-runtime/v1/invocations:bulk", Some("operator"), "Do one action on all invocations that a filter finds"),
    op("invocations", "getInvocation", "GET", "/api/serverless-runtime/v1/invocations/{id}", Some("viewer"), "Read an invocation"),
    op("invocations", "controlInvocation", "POST", "/api/serverless-runtime/v1/invocations/{id}:control", Some("operator"), "Cancel, suspend, resume, retry or replay an invocation, or retry or skip a step of it"),
    op("invocations", "signalInvocation", "POST", "/api/serverless-runtime/v1/invocations/{id}:signal", Some("operator"), "Send a message to a workflow that waits for it"),
    op("invocations", "getInvocationTimeline", "GET", "/api/serverless-runtime/v1/invocations/{id}/timeline", Some("viewer"), "What happened to an invocation; live as server-sent events"),
    op("types", "listTypes", "GET", "/api/serverless-runtime/v1/types", Some("viewer"), "List the published types"),
    op("types", "getType", "GET", "/api/serverless-runtime/v1/types/{id}", Some("viewer"), "Read the JSON Schema of a type"),
    op("runs", "startRun", "POST", "/v1/runs", Some("operator"), "Start a run of a plan"),
    op("runs", "listRuns", "GET", "/v1/runs", Some("viewer"), "List runs, newest first"),
    op("runs", "importRun", "POST", "/v1/runs/import", Some("admin"), "Put an exported run into the store"),
    op("runs", "getRun", "GET", "/v1/runs/{id}", Some("viewer"), "Read a run"),
    op("runs", "deleteRun", "DELETE", "/v1/runs/{id}", Some("admin"), "Remove a run with all its events"),
    op("runs", "getRunEvents", "GET", "/v1/runs/{id}/events", Some("viewer"), "The events of a run; live as server-sent events"),
    op("runs", "signalRun", "POST", "/v1/runs/{id}/signals", Some("operator"), "Send a signal to a run"),
    op("runs", "exportRun", "GET", "/v1/runs/{id}/export", Some("operator"), "A run as a file"),
    op("runs", "terminateRun", "POST", "/v1/runs/{id}/terminate", Some("admin"), "End a run at once"),
    op("runs", "getRunLogs", "GET", "/v1/runs/{id}/logs", Some("operator"), "What the code of a run wrote"),
    op("functions", "openChannel", "POST", "/v1/channel", Some("operator"), "Checkpoints of many executions over one request, as frames"),
    op("functions", "listFunctions", "GET", "/v1/functions", Some("viewer"), "List functions"),
    op("functions", "getFunction", "GET", "/v1/functions/{name}", Some("viewer"), "A function with its versions and aliases"),
    op("functions", "registerFunction", "PUT", "/v1/functions/{name}", Some("developer"), "Publish the next version of a function"),
    op("functions", "removeFunction", "DELETE", "/v1/functions/{name}", Some("admin"), "Remove a function that no run needs"),
    op("functions", "getFunctionVersion", "GET", "/v1/functions/{name}/versions/{version}", Some("viewer"), "One version, and where its own workers ask for work"),
    op("functions", "putAlias", "PUT", "/v1/functions/{name}/aliases/{alias}", Some("developer"), "Point an alias at a version"),
    op("functions", "removeAlias", "DELETE", "/v1/functions/{name}/aliases/{alias}", Some("developer"), "Remove an alias"),
    op("identity", "whoAmI", "GET", "/v1/whoami", Some("viewer"), "Whom the server takes the caller for, and what that one may do"),
    op("identity", "listKeys", "GET", "/v1/keys", Some("admin"), "List keys"),
    op("identity", "createKey", "POST", "/v1/keys", Some("admin"), "Make a key; its secret is shown once"),
    op("identity", "revokeKey", "DELETE", "/v1/keys/{id}", Some("admin"), "Revoke a key"),
    op("identity", "readAudit", "GET", "/v1/audit", Some("admin"), "Who did what, and who was refused"),
    op("platform", "listAlerts", "GET", "/v1/alerts", Some("viewer"), "Conditions that an operator should see"),
    op("platform", "getSeries", "GET", "/v1/series", Some("viewer"), "How invocations stood in the last hour, for charts"),
    op("platform", "listDeadLetters", "GET", "/v1/dead-letters", Some("platform-admin"), "Events that could not be published"),
    op("platform", "redriveDeadLetters", "POST", "/v1/dead-letters/redrive", Some("platform-admin"), "Publish dead letters again"),
    op("platform", "getStoreInfo", "GET", "/v1/store/info", Some("platform-admin"), "What the store is"),
    op("platform", "backupStore", "GET", "/v1/store/backup", Some("platform-admin"), "Copy the store"),
    op("platform", "verifyStore", "POST", "/v1/store/verify", Some("platform-admin"), "Compare the store's rows with its log"),
    op("platform", "runRetention", "POST", "/v1/store/retention", Some("platform-admin"), "Remove what retention lets go"),
    op("platform", "executeRuntimeCommand", "POST", "/runtime/commands", Some("platform-admin"), "Execute a command of the runtime contract"),
    op("platform", "getRuntimeSnapshot", "GET", "/runtime/snapshot", Some("viewer"), "The runtime contract's snapshot"),
    op("platform", "getRuntimeEvents", "GET", "/runtime/events", Some("platform-admin"), "The runtime contract's events"),
    op("platform", "getRuntimeSchema", "GET", "/runtime/schema", Some("platform-admin"), "The runtime contract's schema"),
    op("platform", "getMetrics", "GET", "/metrics", Some("viewer"), "Metrics in Prometheus' text form"),
    op("platform", "getFront", "GET", "/", None, "A page that says what this is"),
    op("platform", "getLiveness", "GET", "/livez", None, "Whether the process runs"),
    op("platform", "getReadiness", "GET", "/readyz", None, "Whether the server takes work, and why not"),
    op("platform", "getVersion", "GET", "/version", None, "The version"),
    op("platform", "getOpenApi", "GET", "/openapi.json", None, "This description"),
];

impl Operation {
    /// Of the serverless runtime API, which has its own documents and refusals.
    pub(super) fn is_serverless(&self) -> bool {
        matches!(self.tag, "entrypoints" | "invocations" | "types")
    }
}
