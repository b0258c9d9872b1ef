// Looks at the server every few seconds, whatever page is open, and remembers for a while: charts begin with what was seen.

import { get, pause, readiness, REST } from "../core/api.js";

const EVERY_MS = 5000;
const KEPT = 180;
const PLACE = "servo.samples";

let samples = read();
let last = null;
const listeners = new Set();

function read() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(PLACE) ?? "[]");
    return kept.filter((sample) => sample.at > Date.now() - EVERY_MS * KEPT);
  } catch {
    return [];
  }
}

/** Calls with the newest sample, now and at each new one; ends with the signal. */
export function onSample(listener, signal) {
  listeners.add(listener);
  if (last) listener(last);
  signal?.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

export const history = () => samples;

export async function sample() {
  const at = Date.now();
  const [counts, ready, alerts, oldest] = await Promise.allSettled([
    get(`${REST}/invocations:counts`),
    readiness(),
    get("/v1/alerts", { limit: 100 }),
    get(`${REST}/invocations`, { status: "queued", $orderby: "created_at asc", limit: 1 }),
  ]);
  const of = (settled, otherwise) => (settled.status === "fulfilled" ? settled.value : otherwise);
  const byStatus = Object.fromEntries((of(counts, null)?.items ?? []).map((item) => [item.status, item.count]));
  const head = of(oldest, null)?.items?.[0];
  const told = of(ready, { ready: true, reasons: [] });
  last = {
    at,
    reachable: counts.status === "fulfilled" || ready.status === "fulfilled",
    counts: byStatus,
    ready: told.ready,
    reasons: told.reasons ?? [],
    alerts: (of(alerts, null)?.items ?? []).length,
    queueAge: head ? Math.max(0, at - Date.parse(head.timestamps.created_at)) : 0,
  };
  if (counts.status === "fulfilled") {
    samples = [...samples, last].slice(-KEPT);
    sessionStorage.setItem(PLACE, JSON.stringify(samples));
  }
  for (const listener of listeners) listener(last);
  return last;
}

let begun = false;
export async function beginSampling() {
  if (begun) return;
  begun = true;
  for (;;) {
    // Nobody looks, or nobody has shown a key.
    if ((!document.hidden || !last) && document.querySelector("main")) await sample().catch(() => {});
    await pause(EVERY_MS);
  }
}
