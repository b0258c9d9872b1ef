// What matters most about a run, above its timeline: why it failed and where, and what went in and came out, in a line each.

import { h } from "../core/dom.js";
import { errorName } from "../core/format.js";
import { to } from "../core/router.js";
import { parsed } from "../ui/json.js";
import { codeOf, partsOf, traceView } from "./trace.js";

const LINE_CHARS = 240;

/** `stepLink` gives the address of this page with a step chosen; `tabLink` with a tab. */
export function summaryOf(record, model, { stepLink, tabLink }) {
  const parts = [failureOf(record, model, stepLink), ...payloads(record, model, tabLink)].filter(Boolean);
  return parts.length > 0 ? h("section.card.summary", { "aria-label": "Summary" }, parts) : null;
}

function failureOf(record, model, stepLink) {
  const { error } = record;
  const undo = model.undoError();
  if (!error && !undo) return null;
  const kind = error?.error_type_id;
  const told = error ? partsOf(error) : null;
  const step = error ? failedStep(model, error) : null;
  return h(
    "div.summary-error",
    { role: "group", "aria-label": "Error" },
    undo
      ? [
          h(
            "p.message",
            `could not be undone: ${undo.ErrorMessage ?? undo.message ?? "no reason was given"}`,
            model.undo.child
              ? [" ", h("a.link.small", { href: to(["invocations", model.undo.child]) }, "the run that should have undone it")]
              : null,
          ),
        ]
      : null,
    error
      ? h(
          "p.message",
          undo ? h("span.soft", "The cause: ") : null,
          error.message ?? "failed without a message",
        )
      : null,
    h(
      "p.where",
      kind ? h("span.tag", { title: kind }, errorName(kind)) : null,
      step ? ["in the step ", h("a.link", { href: stepLink(step.id), id: "failed-step" }, step.name)] : null,
    ),
    told ? traceView(told, codeOf(record, model)) : null,
  );
}

/** The operation whose error ended the run, as far as the message tells; otherwise the last that failed in this round. */
function failedStep(model, error) {
  const from = model.rounds.at(-1)?.from ?? 0;
  const failed = [...model.operations.values()].filter(
    (operation) => operation.status === "failed" && (operation.spans.at(-1)?.to ?? 0) >= from,
  );
  // Whatever is around a failure failed with it.
  const around = new Set(failed.map((operation) => operation.parent));
  const origins = failed.filter((operation) => !around.has(operation.id));
  return origins.findLast((operation) => operation.error?.ErrorMessage === error.message) ?? origins.at(-1) ?? null;
}

function payloads(record, model, tabLink) {
  if (record.payloads_hidden) return [];
  const ended = model.events.findLast((event) => event.eventType === "ExecutionEnded");
  const input = record.kind === "invocation" ? record.params : parsed(model.execution?.input ?? null);
  const output = record.kind === "invocation" ? record.result : parsed(ended?.result ?? null);
  return [line("Input", input, tabLink), line("Output", output, tabLink)];
}

function line(name, value, tabLink) {
  if (value === null || value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return h(
    "div.summary-line",
    h("a.what", { href: tabLink(name) }, name),
    h("span.mono.clip", text.length > LINE_CHARS ? `${text.slice(0, LINE_CHARS)}…` : text),
  );
}
