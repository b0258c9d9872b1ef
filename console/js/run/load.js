// One run, whatever it is: the invocation of an entrypoint, an execution of a function, or the run of a plan.

import { get, REST } from "../core/api.js";
import { known } from "../ui/status.js";

/** Events that are read from the beginning; of what comes after them, only so many before the end. */
const EVENTS_MAX = 60_000;
const TAIL = 5000;

/** The events are read before: they tell what kind of run it is. */
export async function loadRecord(id, model, signal) {
  const path = encodeURIComponent(id);
  if (model.execution?.entrypoint) return { ...(await get(`${REST}/invocations/${path}`, {}, { signal })), kind: "invocation" };
  return ofRun(await get(`/v1/runs/${path}`, {}, { signal }), model);
}

/** The event contract's snapshot in the words of the page. */
function ofRun(run, model) {
  const queued = model.events[0];
  const last = model.handler.spans.at(-1);
  // The event contract has no word for it: the code has returned and the run waits.
  const rests = run.status === "RUNNING" && !model.isPlan && last?.kind === "wait" && last.to === null;
  return {
    kind: "run",
    id: run.runId,
    status: rests ? "suspended" : known(run.status),
    name: queued?.planRef?.planId ?? run.runId,
    version: queued?.planRef?.planVersion,
    error: run.rootCause ? { message: run.rootCause.message, error_type_id: run.rootCause.code, details: run.rootCause } : null,
    blocked_by: (run.blockedBy ?? []).map((by) => ({ ...by, until: by.earliestAt })),
    timestamps: { created_at: model.from, started_at: run.startedAt ?? null, finished_at: model.to },
    payloads_hidden: queued?.payloadsHidden,
    snapshot: run,
  };
}

/**
 * All events that the model does not have yet, a page at a time. Of a log that is too long the middle is left out: how it
 * began is there, and how it stands. `left` says how many events that are.
 */
export async function loadEvents(id, model, signal) {
  let after = model.seq;
  let left = 0;
  for (;;) {
    const page = await get(`/v1/runs/${encodeURIComponent(id)}/events`, { after, limit: 1000 }, { signal });
    for (const event of page.events) model.add(event);
    const all = page.lastEventSeq;
    if (page.events.length === 0 || page.nextAfter >= all) return { after: page.nextAfter, left };
    after = page.nextAfter;
    if (left === 0 && model.events.length >= EVENTS_MAX && all - after > TAIL) {
      left = all - TAIL - after;
      after = all - TAIL;
    }
  }
}
