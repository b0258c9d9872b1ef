// Why something waits, in words.

import { relative } from "../core/format.js";

const CAUSES = {
  queue: () => "as many runs are active as may be",
  slot: () => "waits for a free place",
  approval: () => "waits for an approval",
  delay: () => "starts later",
  capacity: () => "as many runs are active as may be",
  draining: () => "paused; steps under way may still end",
  pause: () => "paused by an operator",
  worker: (by) => `waits for a worker of ${by.name ?? "its function"}`,
  handler: (by) => `waits for its handler: ${by.reason ?? "it cannot be reached"}`,
  retry: () => "waits before the next try",
  timer: (by) => (by.name ? `sleeps (${by.name})` : "sleeps"),
  signal: (by) => `waits for the signal ${by.name ?? ""}`.trim(),
  event: (by) => `waits for the event ${by.name ?? ""}`.trim(),
  callback: (by) => `waits for the callback ${by.name ?? ""}`.trim(),
  invocation: (by) => `waits for the run of ${by.name ?? "another entrypoint"}`,
  operator: () => "suspended by an operator",
  compensation: () => "waits for the run that undoes it",
};

/** What each cause means and what can be done about it. */
export const ABOUT = {
  queue: ["Queue", "The tenant has as many active runs as it may. They start as others end."],
  slot: ["Free place", "The entrypoint's max_concurrent, or the node's own limit, is reached."],
  worker: ["Worker", "No worker that runs this version of the function is free. Start one, or more."],
  handler: ["Handler", "The function cannot be reached. It is called again until it can, or until the run's time is over."],
  retry: ["Retry", "The last try failed; the next one has a time. Retry now to skip the wait."],
  timer: ["Timer", "The code asked to sleep. Nothing is held meanwhile."],
  signal: ["Signal", "The code waits for a message. Send it from the invocation's page."],
  event: ["Event", "The code waits for an event."],
  callback: ["Callback", "A person or a system outside has to answer. Approve or reject it on the invocation's page."],
  invocation: ["Another run", "It continues when the run that it called ends."],
  operator: ["Operator", "An operator suspended it. Resume it when the reason is gone."],
  compensation: ["Compensation", "The run that undoes it has not ended."],
  unknown: ["Its turn", "It is about to continue."],
};

export function causeText(by) {
  const text = (CAUSES[by.cause] ?? (() => by.cause))(by);
  if (!by.until) return text;
  const when = relative(Date.parse(by.until));
  return ["timer", "retry", "handler", "slot", "delay"].includes(by.cause) ? `${text}, continues ${when}` : `${text}, gives up ${when}`;
}

export function waitText(record) {
  return (record.blocked_by ?? []).map(causeText).join("; ");
}
