// Statuses: one word, one shape and one colour each, everywhere.

import { h } from "../core/dom.js";
import { icon } from "./icons.js";

/** In the order in which lists of counts show them. */
export const STATUSES = [
  "queued",
  "running",
  "suspended",
  "succeeded",
  "failed",
  "compensating",
  "compensated",
  "canceled",
  "dead_lettered",
];

export const OPEN = new Set(["queued", "running", "suspended", "compensating"]);

const MEANS = {
  queued: "accepted, and waits for its turn",
  running: "its code runs now",
  suspended: "waits for time, a message, another run or an operator; holds no process",
  succeeded: "ended with a result",
  failed: "ended with an error; can be retried",
  canceled: "ended by a caller or an operator",
  compensating: "failed or canceled, and is being undone",
  compensated: "was undone",
  dead_lettered: "failed and was not retried in time, or could not be undone; can be retried",
};

const WORDS = { dead_lettered: "dead letter" };

/** The event contract's words in the words of the lists. */
const CONTRACT = {
  PENDING: "queued",
  APPROVED: "queued",
  RUNNING: "running",
  PAUSED: "suspended",
  COMPLETED: "succeeded",
  FAILED: "failed",
  CANCELLED: "canceled",
};

export const known = (status) => CONTRACT[status] ?? status;
export const word = (status) => WORDS[status] ?? status;
export const meaning = (status) => MEANS[status] ?? "";

export function badge(given) {
  const status = known(given);
  return h("span.status", { class: `st-${status}`, title: MEANS[status] }, icon(status), h("span", word(status)));
}

export function dot(given) {
  const status = known(given);
  return h("span.status.bare", { class: `st-${status}`, title: word(status) }, icon(status), h("span.sr", word(status)));
}

/** Life of a definition. */
export function life(status) {
  return h("span.tag", { class: `life-${status}` }, status);
}
