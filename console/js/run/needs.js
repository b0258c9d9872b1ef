// What a run waits for, each with the button or the link that helps.

import { h } from "../core/dom.js";
import { absolute, number } from "../core/format.js";
import { to } from "../core/router.js";
import { may } from "../core/session.js";
import { icon } from "../ui/icons.js";
import { button } from "../ui/parts.js";
import { OPEN } from "../ui/status.js";
import { when } from "../ui/time.js";
import { answerCallback, signal as sendSignal } from "./actions.js";
import { causeText } from "./waits.js";

/** Of one kind; a wide group may wait for thousands of things. */
const SHOWN = 5;
/** Causes of which the log knows each operation. */
const KIND_OF = { callback: "callback", signal: "message", event: "message", timer: "timer", invocation: "invoke", retry: "retry" };

export function needsOf(record, model, refresh) {
  if (!OPEN.has(record.status)) return [];
  const kinds = { message: [], callback: [], invoke: [], timer: [], retry: [] };
  for (const operation of model.openWaits()) kinds[kindOf(operation)]?.push(operation);
  const told = (by) => kinds[KIND_OF[by.cause]]?.length > 0;
  const causes = (record.blocked_by ?? []).filter((by) => !told(by));
  const row = {
    message: (operation) => messageRow(operation, record, refresh),
    callback: (operation) => callbackRow(operation, refresh),
    invoke: invokeRow,
    timer: timerRow,
    retry: retryRow,
  };
  return [
    Object.entries(kinds).map(([kind, operations]) => [
      operations.slice(0, SHOWN).map(row[kind]),
      operations.length > SHOWN
        ? need("waiting", `and ${number(operations.length - SHOWN)} more; “Active” above the timeline shows all of them`)
        : null,
    ]),
    causes.length > 0
      ? need(
          "waiting",
          causes.slice(0, SHOWN).map((by, at) => [
            at > 0 ? "; " : "",
            causeText(by),
            by.invocation_id ? [" ", h("a.link", { href: to(["invocations", by.invocation_id]) }, "open it")] : null,
          ]),
        )
      : null,
  ];
}

function kindOf(operation) {
  if (operation.spans.at(-1)?.kind === "retry") return "retry";
  if (operation.message) return "message";
  return { callback: "callback", invoke: "invoke", wait: "timer" }[operation.kind];
}

const need = (glyph, text, buttons = null) =>
  h("div.action-needed", icon(glyph), h("div", text), buttons ? h("div.push", buttons) : null);

/** Relative, and the time itself: “in 2 d” alone does not say which morning. */
const until = (at) => [when(at), h("span.muted.num", ` (${absolute(at)})`)];
const givesUp = (operation) => (operation.until ? ["; gives up ", until(operation.until)] : null);

function messageRow(operation, record, refresh) {
  const name = operation.message;
  return need(
    "send",
    [`Waits for the ${operation.subType === "Event" ? "event" : "signal"} `, h("strong", name), givesUp(operation)],
    may("runs:trigger")
      ? button(`Send ${name}`, () => sendSignal(record, name, refresh), { kind: "small primary", glyph: "send", id: "send-signal" })
      : null,
  );
}

function callbackRow(operation, refresh) {
  return need(
    "user",
    [
      "Waits for an answer to the callback ",
      operation.isNamed ? [h("strong", operation.name), " "] : null,
      h("span.mono.small.muted", operation.callback),
      givesUp(operation),
    ],
    may("runs:trigger") && operation.callback
      ? [
          button("Reject", () => answerCallback(operation, false, refresh), { kind: "small danger" }),
          button("Approve", () => answerCallback(operation, true, refresh), { kind: "small primary", glyph: "check", id: "approve" }),
        ]
      : null,
  );
}

const invokeRow = (operation) =>
  need("invocations", [
    "Waits for the run of ",
    h("strong", operation.name),
    operation.child ? [" ", h("a.link.mono", { href: to(["invocations", operation.child]) }, operation.child)] : null,
  ]);

const timerRow = (operation) =>
  need("waiting", [
    "Sleeps: the timer ",
    operation.isNamed ? [h("strong", operation.name), " "] : null,
    operation.until ? ["ends ", until(operation.until)] : "runs",
  ]);

const retryRow = (operation) =>
  need("retry", [
    "The step ",
    h("strong", operation.name),
    " failed",
    operation.attempts ? ` at try ${number(operation.attempts)}` : "",
    operation.error?.ErrorMessage ? [" (", h("span.bad-text", operation.error.ErrorMessage), ")"] : null,
    operation.until ? ["; the next try is ", until(operation.until)] : "; it is tried again",
  ]);
