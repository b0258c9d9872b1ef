// What a run waits for, each with the button that helps.

import { h } from "../core/dom.js";
import { to } from "../core/router.js";
import { may } from "../core/session.js";
import { icon } from "../ui/icons.js";
import { button } from "../ui/parts.js";
import { OPEN } from "../ui/status.js";
import { when } from "../ui/time.js";
import { answerCallback, signal as sendSignal } from "./actions.js";
import { causeText } from "./waits.js";

export function needsOf(record, model, refresh) {
  const open = OPEN.has(record.status);
  const callbacks = open ? model.openCallbacks() : [];
  const messages = open ? model.openMessages() : [];
  const causes = (record.blocked_by ?? []).filter(
    (by) => !(by.cause === "callback" && callbacks.length) && !(["signal", "event"].includes(by.cause) && messages.length),
  );
  return [
    callbacks.map((operation) =>
      h(
        "div.action-needed",
        icon("user"),
        h(
          "div",
          h("strong", operation.name),
          " waits for an answer",
          operation.until ? [", gives up ", when(operation.until)] : null,
        ),
        may("runs:trigger")
          ? h(
              "div.push",
              button("Reject", () => answerCallback(operation, false, refresh), { kind: "small danger" }),
              button("Approve", () => answerCallback(operation, true, refresh), {
                kind: "small primary",
                glyph: "check",
                id: "approve",
              }),
            )
          : null,
      ),
    ),
    messages.map((name) =>
      h(
        "div.action-needed",
        icon("send"),
        h("div", "Waits for the signal ", h("strong", name)),
        may("runs:trigger")
          ? h(
              "div.push",
              button(`Send ${name}`, () => sendSignal(record, name, refresh), {
                kind: "small primary",
                glyph: "send",
                id: "send-signal",
              }),
            )
          : null,
      ),
    ),
    causes.length > 0 && open
      ? h(
          "div.action-needed",
          icon("waiting"),
          h(
            "div",
            causes.map((by, at) => [
              at > 0 ? "; " : "",
              causeText(by),
              by.invocation_id ? [" ", h("a.link", { href: to(["invocations", by.invocation_id]) }, "open it")] : null,
            ]),
          ),
        )
      : null,
  ];
}
