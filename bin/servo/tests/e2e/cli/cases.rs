//! What is typed, and what comes of it. `{…}` is something to act on, made anew for every line (`world.rs`).

/// What a command prints when it does as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prints {
    /// A table or fields for people, the server's document for programs.
    Data,
    /// The same document for both.
    Json,
    /// Text of its own kind, whatever the format: a script, a file.
    Text,
    /// Nothing on stdout: there is nothing to say but that it is done.
    Note,
}

#[derive(Debug)]
pub(super) struct Case {
    pub(super) line: &'static str,
    pub(super) exit: u8,
    pub(super) prints: Prints,
    /// What the table must say.
    pub(super) says: &'static str,
}

const fn data(line: &'static str, says: &'static str) -> Case {
    Case { line, exit: 0, prints: Prints::Data, says }
}

const fn prints(prints: Prints, line: &'static str) -> Case {
    Case { line, exit: 0, prints, says: "" }
}

const fn refused(line: &'static str, exit: u8) -> Case {
    Case { line, exit, prints: Prints::Data, says: "" }
}

/// Commands that do not end by themselves, or are a test of their own.
pub(super) const ELSEWHERE: [(&str, &str); 3] = [
    ("dev", "every test of this folder starts it; `operate` stops it"),
    ("server", "`operate`"),
    ("demo crash", "`demo`"),
];

pub(super) const CASES: &[Case] = &[
    data("config check --config servo.toml", "is good"),
    data("config print --config servo.toml", "[server]"),
    refused("config check --config nowhere.toml", 2),
    data("runs list", "STATUS"),
    data("runs list --status succeeded --limit 1", "COMPLETED"),
    data("runs get {finished}", "COMPLETED"),
    data("runs get {finished} {finished}", "COMPLETED"),
    prints(Prints::Json, "runs get {finished} --watch"),
    refused("runs get inv_nobody", 4),
    data("runs get {finishedend}", "COMPLETED"),
    refused("runs get ffffffff", 4),
    data("runs get {workflow}", "signal `approval`, since"),
    data("runs events {finished}", "RunCompleted"),
    data("runs tail {finished}", "RunCompleted"),
    data("runs tail {failed}", "charge"),
    data("runs start plan.json --wait", "COMPLETED"),
    refused("runs start servo.toml", 2),
    data("runs signal {slow} pause --reason noon", "PAUSED"),
    data("runs pause {slow}", "PAUSED"),
    data("runs resume {paused}", "RUNNING"),
    data("runs cancel {slow} {slow}", "CANCELLED"),
    data("runs approve {unapproved}", "STATUS"),
    data("runs retry {broken}", "RUN"),
    prints(Prints::Json, "runs export {finished}"),
    data("runs import {exported}", "imported"),
    data("runs terminate {slow} --yes", "terminated"),
    data("runs delete {finished} --yes", "deleted"),
    refused("runs delete {finished}", 2),
    data("entrypoints register tax.star --name vendor.app.{new}", "draft"),
    refused("entrypoints register tax.star", 2),
    data("entrypoints validate tax.star --name vendor.app.{new}", "draft"),
    data("entrypoints list", "ADDRESS"),
    data("entrypoints get {draft}", "draft"),
    data("entrypoints get vendor.app.tax", "vendor.app.tax.v1"),
    refused("entrypoints get vendor.app.taxx", 4),
    data("entrypoints activate {draftname}", "active"),
    data("entrypoints update {draft} tax.star --name vendor.app.{last}", "draft"),
    data("entrypoints activate {draft}", "active"),
    data("entrypoints deprecate {active}", "deprecated"),
    data("entrypoints disable {active}", "disabled"),
    data("entrypoints enable {disabled}", "active"),
    data("entrypoints archive {disabled}", "archived"),
    prints(Prints::Note, "entrypoints delete {draft}"),
    data("invocations start vendor.app.tax --params {\"amount\":100} --wait", "succeeded"),
    data("invocations start vendor.app.tax --params {\"amount\":100} --dry-run", "nothing was started"),
    refused("invocations start vendor.app.nobody", 4),
    data("invocations start vendor.app.order --mode async", "vendor.app.order.v1"),
    data("invocations start {outdated} --wait", "is deprecated, and no version of it is active"),
    data("invocations list --status succeeded", "INVOCATION"),
    data("invocations list --entrypoint vendor.app.order", "vendor.app.order.v1"),
    refused("invocations list --entrypoint vendor.app.ordr", 4),
    refused(
        "invocations list --entrypoint gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.nobody.v1~",
        4,
    ),
    data("invocations get {done}", "succeeded"),
    data("invocations get {waiting}", "signal `approval`, since"),
    data("invocations get {failed}", "no money"),
    data("invocations get {doneend}", "succeeded"),
    prints(Prints::Json, "invocations get {done} --watch"),
    data("invocations timeline {done}", "succeeded"),
    data("invocations watch {done}", "succeeded"),
    prints(Prints::Text, "invocations logs {logged}"),
    data("invocations cancel {waiting} {waiting}", "canceled"),
    refused("invocations suspend {done}", 5),
    data("invocations resume {waiting}", "running"),
    refused("invocations resume {done}", 5),
    data("invocations retry {failed}", "Invocation"),
    data("invocations replay {done}", "Invocation"),
    data("invocations skip {failed} --step charge", "Invocation"),
    data("invocations signal {waiting} approval --payload {\"yes\":true}", "Invocation"),
    data("invocations signal {waiting} aproval", "kept; this run waits for `approval`"),
    data("invocations bulk cancel --filter status␣eq␣'suspended' --all --dry-run", "INVOCATION"),
    data("invocations counts", "COUNT"),
    data("invocations counts --entrypoint vendor.app.order", "COUNT"),
    data("functions register {new} --pull", "pull"),
    data("functions list", "REACHED BY"),
    data("functions show approve", "latest"),
    data("functions alias approve live 1", "live"),
    prints(Prints::Note, "functions unalias {aliased} live"),
    prints(Prints::Note, "functions remove {function}"),
    data("functions invoke approve --event --payload {}", "arn:"),
    refused("functions invoke nobody", 4),
    prints(Prints::Text, "functions logs {logged}"),
    data("executions list approve", "STATUS"),
    data("executions get {execution}", "RUNNING"),
    data("executions history {execution}", "CallbackStarted"),
    data("executions stop {execution} --reason enough", "stopped"),
    prints(Prints::Note, "callbacks succeed {callback} --payload {\"approved\":true}"),
    prints(Prints::Note, "callbacks fail {callback} --message no"),
    prints(Prints::Note, "callbacks heartbeat {callback}"),
    refused("callbacks heartbeat QUFBQQ==", 4),
    data("runtime exec {\"command\":\"CaptureSnapshot\"}", "SnapshotCaptured"),
    refused("runtime exec {\"command\":\"Explode\"}", 2),
    data("runtime snapshot", "Ready"),
    prints(Prints::Json, "runtime schema"),
    data("runtime events --limit 5", ""),
    data("store info", "sqlite"),
    data("store backup {path}", ""),
    data("store restore {backup} --data-dir {path}", ""),
    data("store verify", "runs"),
    data("store retention", ""),
    refused("store accept-loss", 2),
    data("keys create {new} --role viewer", ""),
    data("keys generate --tenant acme", "roles = [\"platform-admin\"]"),
    data("keys list", "KEY"),
    data("keys revoke {key}", ""),
    data("keys revoke {keyend}", "revoked"),
    data("explain RUN_NOT_FOUND", "servo runs list"),
    data("explain not_active", "HTTP 409"),
    refused("explain NO_SUCH", 4),
    data("audit list --limit 5", ""),
    data("alerts", ""),
    data("dead-letters list", ""),
    data("dead-letters redrive --all", ""),
    data("doctor", "readiness"),
    data("doctor --config servo.toml", "configuration"),
    data("whoami", "--server"),
    data("profiles add {new} --server http://127.0.0.1:1", "http://127.0.0.1:1"),
    data("profiles list", "in use"),
    data("profiles use {profile}", "in use"),
    data("profiles remove {profile}", "PROFILE"),
    data("types list", "limits"),
    prints(Prints::Json, "types get gts.x.core.serverless.limits.v1~"),
    prints(Prints::Text, "metrics"),
    prints(Prints::Json, "openapi"),
    prints(Prints::Text, "completions bash"),
    data("version", "server"),
];
