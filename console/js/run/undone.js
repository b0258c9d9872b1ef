// Dead letters that could not be undone. The record of a list tells what the run failed of; that its undoing failed, too, stands
// at the end of its log.

import { get } from "../core/api.js";
import { h } from "../core/dom.js";

/** The compensation's end and the dead letter are the last events of such a run. */
const LAST = 5;
const told = new Map();
let turn = Promise.resolve();

/** What a row says about its error. The part that is read from the log comes as soon as it is known, one run after the other. */
export function errorRemark(record) {
  const cause = record.error?.message ?? "no message";
  const element = h("span.bad-text", { title: cause }, cause);
  if (record.status !== "dead_lettered") return element;
  const say = (reason) => {
    if (!reason) return;
    element.textContent = `could not be undone: ${reason}; the cause: ${cause}`;
    element.title = element.textContent;
  };
  const key = `${record.id} ${record.timestamps.finished_at}`;
  if (told.has(key)) {
    say(told.get(key));
  } else {
    turn = turn.then(async () => {
      // A row that was replaced meanwhile has asked again.
      if (!told.has(key)) told.set(key, await undoError(record.id).catch(() => null));
      say(told.get(key));
    });
  }
  return element;
}

async function undoError(id) {
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const { lastEventSeq } = await get(path);
  const { events } = await get(`${path}/events`, { after: Math.max(0, lastEventSeq - LAST), limit: LAST });
  const error = events.findLast((event) => event.eventType === "CompensationEnded")?.error;
  return error ? (error.ErrorMessage ?? "no reason was given") : null;
}
