// Times that keep themselves up to date: relative to now, absolute on hover.

import { h } from "../core/dom.js";
import { absolute, duration, relative } from "../core/format.js";

const EVERY_MS = 1000;

/** `at` is what the API gives, or milliseconds. */
export function when(at) {
  if (at === null || at === undefined) return h("span.muted", "–");
  const ms = typeof at === "number" ? at : Date.parse(at);
  return h("time", { datetime: new Date(ms).toISOString(), title: absolute(ms), data: { at: ms } }, relative(ms));
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
