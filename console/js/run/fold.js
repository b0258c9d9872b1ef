// A run's events folded into what a waterfall shows: lanes of spans. The server's own fold decides; this one only draws.
//
// A span is `{kind, from, to}`; `to` is null while it lasts. Kinds: queue, run, wait, retry, paused, undo.

const timeOf = (event) => Date.parse(event.occurredAt ?? event.emittedAt);

const KIND_OF = { STEP: "step", WAIT: "wait", CALLBACK: "callback", CHAINED_INVOKE: "invoke", CONTEXT: "context" };

export class RunModel {
  constructor() {
    this.events = [];
    this.seq = 0;
    this.from = null;
    this.to = null;
    this.handler = { id: "handler", spans: [], invocations: 0 };
    this.operations = new Map();
    /** Of a plan: which steps need a step. */
    this.dependents = new Map();
    this.undo = null;
    /** Why it is a dead letter. */
    this.deadReason = null;
    this.marks = [];
    this.last = null;
    this.isPlan = false;
    this.ended = false;
    /** Who put it here, if it came out of a file. */
    this.imported = null;
    /** Each time that the run was begun: a retry is a new round on the same log. */
    this.rounds = [];
  }

  add(event) {
    // Two readers of the log may bring the same event.
    if (event.runSeq <= this.seq) return;
    this.seq = event.runSeq;
    const at = timeOf(event);
    this.events.push(event);
    this.from ??= at;
    const rule = RULES[event.eventType];
    if (rule) rule.call(this, event, at);
    this.last = at;
  }

  /** An operation or step by its id, made when it is seen first. */
  operation(id, make = {}) {
    let found = this.operations.get(id);
    if (!found) {
      found = {
        id,
        name: id,
        kind: "step",
        spans: [],
        status: "running",
        attempts: 0,
        depth: 0,
        parent: null,
        payload: null,
        error: null,
        callback: null,
        child: null,
        ...make,
      };
      this.operations.set(id, found);
    }
    return found;
  }

  /** Why the last round could not be undone; nothing if it was, or is not over. */
  undoError() {
    return this.undo?.status === "failed" && this.undo.round === this.rounds.length ? this.undo.error : null;
  }

  /** Whether its code, or what it waits for, is under way. */
  isActive(operation) {
    return !operation.done && current(operation) !== undefined;
  }

  /** What has been begun and has not come: timers, callbacks, messages, other runs, and steps before their next try. */
  openWaits() {
    const waits = [];
    for (const operation of this.operations.values()) {
      if (operation.done) continue;
      const kind = current(operation)?.kind;
      if (kind === "wait" || kind === "retry") waits.push(operation);
    }
    return waits;
  }
}

/** Of a wait, or before the next try; where there are milliseconds, the seconds are these rounded up. */
const delayOf = (event) => event.millis ?? (event.seconds ?? 0) * 1000;

const open = (row, kind, from, more = {}) => row.spans.push({ kind, from, to: null, ...more });
const current = (row) => row.spans.findLast((span) => span.to === null);

function close(row, to, more = {}) {
  const span = current(row);
  if (span) Object.assign(span, { to: Math.max(to, span.from) }, more);
  return span;
}

function finish(operation, at, status, error = null) {
  close(operation, at, error ? { bad: true } : {});
  Object.assign(operation, { done: true, status, error: error ?? operation.error });
}

function endAll(model, at) {
  close(model.handler, at);
  for (const operation of model.operations.values()) {
    if (operation.done) continue;
    close(operation, at);
    if (operation.status === "running" || operation.status === "suspended") operation.status = "canceled";
  }
  model.ended = true;
  settle(model, at);
}

function settle(model, at) {
  model.to = at;
  const round = model.rounds.at(-1);
  if (round) round.to = at;
}

/** What a handler waits for when it is not running: a wait, or the next try. */
function rest(model, at, kind, more = {}) {
  close(model.handler, at, more);
  open(model.handler, kind, at);
}

const RULES = {
  RunQueued(event, at) {
    this.rounds.push({ from: at, to: null });
    if (event.logicalAttemptId > 1) this.marks.push({ at, text: `retried (round ${event.logicalAttemptId})`, kind: "retry" });
    this.ended = false;
    this.to = null;
    this.cause = null;
    this.deadReason = null;
    for (const operation of this.operations.values()) {
      if (operation.status === "failed") Object.assign(operation, { done: false });
    }
    close(this.handler, at);
    open(this.handler, "queue", at);
    for (const step of event.plan?.steps ?? []) {
      this.isPlan = true;
      const needs = step.dependsOn ?? [];
      this.operation(step.stepId, { name: step.stepId, status: "queued", needs });
      for (const id of needs) {
        if (!this.dependents.has(id)) this.dependents.set(id, []);
        this.dependents.get(id).push(step.stepId);
      }
    }
  },
  RunStarted(_event, at) {
    if (!this.isPlan) return;
    close(this.handler, at);
    open(this.handler, "run", at);
    for (const step of this.operations.values()) if (!step.needs?.length && !current(step)) open(step, "queue", at);
  },
  StepStarted(event, at) {
    this.isPlan = true;
    const step = this.operation(event.stepId);
    close(step, at);
    open(step, "run", at, { attempt: event.logicalAttemptId });
    Object.assign(step, { status: "running", done: false, attempts: event.logicalAttemptId });
  },
  StepCompleted(event, at) {
    finish(this.operation(event.stepId), at, "succeeded");
    for (const id of this.dependents.get(event.stepId) ?? []) {
      const step = this.operations.get(id);
      if (step.spans.length === 0 && step.needs.every((needed) => this.operations.get(needed)?.done)) open(step, "queue", at);
    }
  },
  StepFailed(event, at) {
    finish(this.operation(event.stepId), at, "failed", { ErrorType: event.error?.code, ErrorMessage: event.error?.message });
  },
  StepSkipped(event, at) {
    const step = this.operation(event.stepId);
    close(step, at);
    Object.assign(step, { done: true, status: "canceled", note: event.reason });
  },
  StepRetryScheduled(event, at) {
    const step = this.operation(event.stepId);
    open(step, "retry", at, { until: event.notBefore });
    Object.assign(step, { done: false, status: "running" });
  },
  ExecutionStarted(event) {
    this.execution = event;
  },
  HandlerInvoked(event, at) {
    this.handler.invocations = event.invocation;
    close(this.handler, at);
    open(this.handler, "run", at, { attempt: event.invocation });
    for (const operation of this.operations.values()) {
      const span = current(operation);
      if (span?.kind === "queue") {
        close(operation, at);
        open(operation, "run", at, { attempt: operation.attempts + 1 });
      }
    }
  },
  HandlerReturned(event, at) {
    const failed =
      event.status === "RETRYING" || event.status === "CRASHED" || event.status === "LOST" || event.status === "FAILED";
    rest(
      this,
      at,
      event.status === "PENDING" ? "wait" : failed ? "retry" : "queue",
      failed ? { bad: true, error: event.error } : {},
    );
    if (event.status === "SUCCEEDED" || event.status === "FAILED") this.handler.spans.pop();
    if (event.cpuMs !== undefined) this.handler.cpuMs = (this.handler.cpuMs ?? 0) + event.cpuMs;
    if (event.memoryMb !== undefined) this.handler.memoryMb = Math.max(this.handler.memoryMb ?? 0, event.memoryMb);
  },
  OperationUpdated(event, at) {
    if (event.type === "EXECUTION") return;
    const operation = this.operation(event.operationId, { kind: KIND_OF[event.type] ?? "step", parent: event.parentId ?? null });
    if (event.name) Object.assign(operation, { name: event.name, isNamed: true });
    else if (operation.name === operation.id) operation.name = event.subType ?? KIND_OF[event.type] ?? event.operationId;
    if (event.subType) operation.subType = event.subType;
    if (event.payload !== undefined && event.payload !== null) operation.payload = event.payload;
    const begins = event.action === "START" || event.begins;
    if (begins) {
      // A step that began and ended in one call: it ran at most since the event before.
      const since = event.action === "START" ? at : (this.last ?? at);
      close(operation, since);
      const waits = operation.kind === "wait" || operation.kind === "callback" || operation.kind === "invoke";
      open(operation, waits ? "wait" : "run", since, { attempt: operation.attempts + 1, bound: event.action !== "START" });
      operation.status = waits ? "suspended" : "running";
      if (operation.kind === "wait") operation.until = at + delayOf(event);
    }
    if (event.callback) {
      operation.callback = event.callback.callbackId;
      if (event.callback.timeoutSeconds) operation.until = at + event.callback.timeoutSeconds * 1000;
    }
    if (event.chained)
      Object.assign(operation, {
        child: event.chained.target?.runId ?? null,
        name: event.name ?? event.chained.function.split("~").filter(Boolean).at(-1),
      });
    if (operation.kind === "callback" && (event.subType === "Signal" || event.subType === "Event"))
      operation.message = operation.name;
    if (event.attempt) operation.attempts = event.attempt;
    if (event.action === "SUCCEED") finish(operation, at, "succeeded");
    else if (event.action === "FAIL") finish(operation, at, "failed", event.error ?? {});
    else if (event.action === "CANCEL") finish(operation, at, "canceled");
    else if (event.action === "RETRY") {
      operation.attempts = event.attempt ?? operation.attempts + 1;
      close(operation, at, { bad: true, error: event.error });
      open(operation, "retry", at);
      Object.assign(operation, { error: event.error ?? operation.error, status: "suspended", until: at + delayOf(event) });
    }
  },
  OperationResolved(event, at) {
    const operation = this.operation(event.operationId);
    if (event.payload !== undefined && event.payload !== null) operation.payload = event.payload;
    if (event.status === "READY" || event.status === "PENDING") {
      close(operation, at);
      open(operation, "queue", at);
    } else {
      finish(
        operation,
        at,
        event.status === "SUCCEEDED" ? "succeeded" : event.status === "CANCELLED" ? "canceled" : "failed",
        event.error ?? (event.status === "TIMED_OUT" ? { ErrorType: "timeout", ErrorMessage: "no answer came in time" } : null),
      );
    }
    const span = current(this.handler);
    if (span?.kind === "wait") rest(this, at, "queue");
  },
  MessageReceived(event, at) {
    this.marks.push({ at, text: `signal ${event.name}`, kind: "signal" });
  },
  RunPaused(_event, at) {
    this.marks.push({ at, text: "suspended", kind: "pause" });
  },
  RunResumed(_event, at) {
    this.marks.push({ at, text: "resumed", kind: "pause" });
  },
  CompensationStarted(event, at) {
    this.undo = { id: "undo", name: "compensation", spans: [], trigger: event.trigger, status: "compensating", child: null, round: this.rounds.length };
    open(this.undo, "undo", at);
    settle(this, null);
  },
  CompensationEnded(event, at) {
    if (!this.undo) return;
    close(this.undo, at, event.error ? { bad: true } : {});
    Object.assign(this.undo, {
      status: event.error ? "failed" : "compensated",
      child: event.handlerRunId ?? null,
      error: event.error ?? null,
    });
    settle(this, at);
  },
  RunCompleted(_event, at) {
    endAll(this, at);
  },
  RunFailed(event, at) {
    endAll(this, at);
    this.cause = event.rootCause;
  },
  RunCancelled(_event, at) {
    endAll(this, at);
  },
  RunDeadLettered(event, at) {
    this.deadReason = event.reason;
    this.marks.push({ at, text: "dead letter", kind: "dead" });
  },
  RunImported(event, at) {
    // No mark on the axis: it may be long after the run.
    this.imported = { by: event.importedBy, at };
  },
};
