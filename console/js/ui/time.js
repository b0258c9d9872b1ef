// Times that keep themselves up to date: relative to now, absolute and with their zone on hover.

import { h } from "../core/dom.js";
import { absolute, duration, relative } from "../core/format.js";

const EVERY_MS = 1000;

/** `at` is what the API gives, or milliseconds. */
export function when(at) {
  if (at === null || at === undefined) return h("span.muted", "–");
  const ms = typeof at === "number" ? at : Date.parse(at);
  return h("time", { datetime: new Date(ms).toISOString(), title: absolute(ms), data: { at: ms } }, relative(ms));
}

/** The time itself with its zone, and how far it is away. */
export function stamp(at) {
  if (at === null || at === undefined) return null;
  const ms = typeof at === "number" ? at : Date.parse(at);
  return h("span.stamp", h("span.num", absolute(ms)), " ", h("span.muted", "(", when(ms), ")"));
}

/** How long something has taken that may still go on. */
export function took(from, until) {
  if (from === null || from === undefined) return h("span.muted", "–");
  const start = typeof from === "number" ? from : Date.parse(from);
  if (until !== null && until !== undefined) {
    const end = typeof until === "number" ? until : Date.parse(until);
    return h("span.num", duration(Math.max(0, end - start)));
  }
  return h("span.num.going", { data: { since: start } }, duration(Math.max(0, Date.now() - start)));
}

/** The whole is told where it is another thing than its last round: so much more, and such a part of it. */
const WHOLE_FROM_MS = 1000;
const WHOLE_PART = 0.1;

/** How long the last round took, and since the run was made, where that is another thing: it was retried, or stood in the queue. */
export function tookOf({ created_at: created, started_at: started, finished_at: finished }) {
  const round = took(started ?? created, finished);
  if (!started || !finished) return round;
  const span = Date.parse(finished) - Date.parse(created);
  if (Date.parse(started) - Date.parse(created) < Math.max(WHOLE_FROM_MS, span * WHOLE_PART)) return round;
  return h(
    "span",
    { title: `the last round took ${round.textContent}; the whole run, with what it waited to start again, ${duration(span)}` },
    round,
    h("span.whole.small.muted", ` whole ${duration(span)}`),
  );
}

setInterval(() => {
  if (document.hidden) return;
  const now = Date.now();
  for (const element of document.querySelectorAll("time[data-at]")) {
    const text = relative(Number(element.dataset.at), now);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of document.querySelectorAll(".going[data-since]")) {
    element.textContent = duration(Math.max(0, now - Number(element.dataset.since)));
  }
}, EVERY_MS);
