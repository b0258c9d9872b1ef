// Looks at the server every few seconds, whatever page is open. What was before, the server remembers: charts begin with that.

import { get, pause, readiness, REST } from "../core/api.js";

const EVERY_MS = 5000;
const KEPT_MS = 3_600_000;
/** Without an answer for so long, the server is said not to answer. */
const PATIENCE_MS = 6000;

let samples = [];
let last = null;
const listeners = new Set();

/** Calls with the newest sample, now and at each new one; ends with the signal. */
export function onSample(listener, signal) {
  listeners.add(listener);
  if (last) listener(last);
  signal?.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

export const history = () => samples;

/** The last hour as the server saw it, on this browser's clock. */
async function recall() {
  const series = await get("/v1/series", {}, { patience: PATIENCE_MS }).catch(() => null);
  if (!series) return;
  const ahead = Date.parse(series.now) - Date.now();
  const seen = series.points.map((point) => ({
    at: Date.parse(point.at) - ahead,
    counts: point.counts,
    queueAge: point.queueAgeMs,
  }));
  const end = seen.at(-1)?.at ?? 0;
  samples = [...seen, ...samples.filter((sample) => sample.at > end)];
}

async function sample() {
  const at = Date.now();
  const patient = { patience: PATIENCE_MS };
  const [counts, ready, alerts, oldest] = await Promise.allSettled([
    get(`${REST}/invocations:counts`, {}, patient),
    readiness(patient),
    get("/v1/alerts", { limit: 100 }, patient),
    get(`${REST}/invocations`, { status: "queued", $orderby: "created_at asc", limit: 1 }, patient),
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
  if (counts.status === "fulfilled") samples = [...samples, last].filter((one) => one.at > at - KEPT_MS);
  tell();
}

function tell() {
  for (const listener of listeners) if (last) listener(last);
}

let begun = false;
export async function beginSampling() {
  if (begun) return;
  begun = true;
  let missed = true;
  for (;;) {
    // Nobody looks, or nobody has shown a key.
    const looked = (!document.hidden || !last) && document.querySelector("main") !== null;
    if (looked) {
      const recalled = missed ? recall() : null;
      await sample().catch(() => {});
      // What is now is shown at once, and what was as soon as it is known.
      if (recalled) await recalled.then(tell);
    }
    missed = !looked;
    await pause(EVERY_MS);
  }
}
