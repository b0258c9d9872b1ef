// Below the timeline: input, output, error, raw events and log lines; and the details of one operation.

import { get } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { absolute, clock, errorName, number, zoneOf } from "../core/format.js";
import { to } from "../core/router.js";
import { may } from "../core/session.js";
import { button, card, empty, facts, failure, iconButton } from "../ui/parts.js";
import { jsonView, parsed } from "../ui/json.js";
import { badge } from "../ui/status.js";
import { stamp } from "../ui/time.js";
import { codeOf, partsOf, traceView } from "./trace.js";

const EVENTS_SHOWN = 200;

/** `code` says whose code it is, for links to its lines. */
export function errorBox(error, code = null) {
  const kind = error.error_type_id ?? error.ErrorType;
  const told = partsOf(error);
  const { details } = told;
  return h(
    "div",
    h(
      "div.error-box",
      h("div.message", error.message ?? error.ErrorMessage ?? "failed without a message"),
      h(
        "div.kinds",
        kind ? h("span.tag", { title: kind }, errorName(kind)) : null,
        told.category ? h("span.tag", told.category) : null,
      ),
    ),
    traceView(told, code),
    details && Object.keys(details).length > 0 ? jsonView(details) : null,
  );
}

export function tabs(record, model, { chosen, onChoose, log }) {
  const hidden = record.payloads_hidden;
  const execution = model.execution;
  const input =
    record.kind === "invocation" ? record.params : (parsed(execution?.input ?? null) ?? record.snapshot?.plan ?? planOf(model));
  const all = [
    record.error ? ["Error", () => errorOf(record, model)] : null,
    hidden
      ? null
      : [
          "Input",
          () => (input === null || input === undefined ? empty("No input", "It was started without any.") : jsonView(input)),
        ],
    hidden ? null : ["Output", () => output(record, model)],
    ["Facts", () => h("div.card-body", { style: { "padding-top": "14px" } }, factsOf(record, model))],
    ["Events", () => events(model)],
    may("payloads:read") ? ["Log", () => log.show(model.seq)] : null,
  ].filter(Boolean);
  const current = all.some(([name]) => name === chosen) ? chosen : all[0][0];
  return card(null, [
    h(
      "div.tabs",
      { role: "tablist", "aria-label": "About this run" },
      all.map(([name]) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${name}`,
            "aria-selected": String(name === current),
            onclick: () => onChoose(name),
          },
          name,
          name === "Events" ? h("span.muted", ` ${number(model.events.length)}`) : "",
        ),
      ),
    ),
    h("div.tab-body", { role: "tabpanel", "aria-labelledby": `tab-${current}` }, all.find(([name]) => name === current)[1]()),
  ]);
}

/** What could not be undone is the operator's next task, so it stands before its cause. */
function errorOf(record, model) {
  const undo = model.undoError();
  const cause = errorBox(record.error, codeOf(record, model));
  if (!undo) return cause;
  return h(
    "div",
    h("div.error-box", h("div.message", `could not be undone: ${undo.ErrorMessage ?? "no reason was given"}`)),
    h("h3.cause", "The cause"),
    cause,
  );
}

const planOf = (model) => model.events.find((event) => event.plan)?.plan ?? null;

function output(record, model) {
  const ended = model.events.findLast((event) => event.eventType === "ExecutionEnded");
  const value = record.kind === "invocation" ? record.result : parsed(ended?.result ?? null);
  if (value === null || value === undefined)
    return empty("No output", record.status === "succeeded" ? "It ended without a result." : "There is none until it succeeds.");
  return jsonView(value);
}

function factsOf(record, model) {
  const times = record.timestamps;
  const metrics = record.observability?.metrics ?? {};
  const version = record.kind === "invocation" ? record.entrypoint_version : record.version;
  return facts([
    ["Status", badge(record.status)],
    ["Version", version],
    ["Created", stamp(times.created_at)],
    ["Started", stamp(times.started_at)],
    ["Ended", stamp(times.finished_at)],
    ["Calls of the code", model.handler.invocations || null],
    ["CPU", (metrics.cpu_time_ms ?? model.handler.cpuMs) ? `${metrics.cpu_time_ms ?? model.handler.cpuMs} ms` : null],
    [
      "Memory",
      metrics.max_memory_used_mb
        ? `${metrics.max_memory_used_mb} of ${metrics.memory_limit_mb} MB`
        : metrics.memory_limit_mb
          ? `limit ${metrics.memory_limit_mb} MB`
          : null,
    ],
    ["Steps", metrics.step_count],
    ["Tenant", record.tenant_id],
    ["Correlation id", record.observability?.correlation_id ? h("span.mono", record.observability.correlation_id) : null],
    ["Trace id", record.observability?.trace_id ? h("span.mono", record.observability.trace_id) : null],
    ["Entrypoint", record.entrypoint_id ? h("span.mono", record.entrypoint_id) : null],
  ]);
}

/** The last ones; all of them are a download away. */
function events(model) {
  const shown = model.events.slice(-EVENTS_SHOWN).reverse();
  const save = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(model.events, null, 1)], { type: "application/json" }));
    h("a", { href: url, download: `${model.events[0]?.runId ?? "run"}.json` }).click();
    URL.revokeObjectURL(url);
  };
  return h(
    "div",
    h(
      "div.table-wrap",
      h(
        "table.events",
        { "aria-label": "Events" },
        h("thead", h("tr", h("th.fit", "Seq"), h("th.fit", "Time"), h("th.fit", "Event"), h("th", "About"))),
        h(
          "tbody",
          shown.map((event) => {
            const at = Date.parse(event.occurredAt ?? event.emittedAt);
            return h(
              "tr",
              h("td.fit.num.muted", event.runSeq),
              h("td.fit.num", { title: absolute(at) }, clock(at), h("span.muted", ` ${zoneOf(at)}`)),
              h("td.fit", event.eventType),
              h("td", h("details", h("summary.clip.soft", about(event)), jsonView(event))),
            );
          }),
        ),
      ),
    ),
    h(
      "div.pager",
      h(
        "span",
        model.events.length > shown.length
          ? `the newest ${shown.length} of ${number(model.events.length)}`
          : `${number(model.events.length)} events`,
      ),
      h("span.push"),
      button("Download all", save, { kind: "small" }),
    ),
  );
}

function about(event) {
  const parts = [
    event.name,
    event.stepId,
    event.action,
    event.type,
    event.signalType,
    event.status,
    event.error?.ErrorMessage ?? event.error?.message,
    event.reason,
    event.rootCause?.message,
  ];
  return parts.filter((part) => typeof part === "string").join(" · ") || "details";
}

/** What the code wrote. Read when the tab is shown, and again only when something has happened since. */
export class LogTab {
  constructor(id, signal) {
    Object.assign(this, { id, signal, seen: -1 });
    this.place = h("div", h("p.card-note", { style: { "padding-top": "12px" } }, "Reading…"));
  }

  show(seq) {
    if (seq !== this.seen) {
      this.seen = seq;
      this.read();
    }
    return this.place;
  }

  async read() {
    const { id, place, signal } = this;
    try {
      const { items } = await get(`/v1/runs/${encodeURIComponent(id)}/logs`, { limit: 1000 }, { signal });
      fill(
        place,
        items.length === 0
          ? empty("No log lines", "What the code writes with ctx.log, or to its standard output, appears here.")
          : h(
              "div.log-lines",
              items.map((line) => h("div", logTime(Date.parse(line.at)), " ", line.text)),
            ),
      );
    } catch (problem) {
      if (signal.aborted) return;
      // The next look tries again.
      this.seen = -1;
      fill(place, failure(problem));
    }
  }
}

const logTime = (at) => h("span.muted", { title: absolute(at) }, `${clock(at)} ${zoneOf(at)}`);

/** One row of the timeline, opened. */
export function operationDetail(operation, record, { code, close }) {
  const tries = operation.spans.filter((span) => span.kind === "run");
  return h(
    "div.op-detail",
    { role: "group", "aria-label": `The operation ${operation.name}` },
    h(
      "header",
      badge(operation.status ?? "running"),
      h("strong", operation.name),
      h("span.muted", operation.subType ?? operation.kind ?? ""),
      h(
        "span.mono.muted.small",
        { title: operation.id },
        operation.id.length > 16 ? `${operation.id.slice(0, 12)}…` : operation.id,
      ),
      h("span", { style: { "margin-left": "auto" } }),
      iconButton("Close", "close", close),
    ),
    h(
      "div.card-body",
      { style: { "padding-top": "10px" } },
      facts([
        ["Began", operation.spans[0] ? stamp(operation.spans[0].from) : null],
        ["Tries", operation.attempts > 1 ? operation.attempts : tries.length > 1 ? tries.length : null],
        [
          operation.kind === "callback" ? "Gives up" : "Continues",
          operation.until && !operation.done ? stamp(operation.until) : null,
        ],
        ["Run", operation.child ? h("a.link.mono", { href: to(["invocations", operation.child]) }, operation.child) : null],
        ["Callback", operation.callback && !operation.message ? h("span.mono", operation.callback) : null],
      ]),
    ),
    operation.error ? errorBox(operation.error, code) : null,
    operation.payload !== null && operation.payload !== undefined && !record.payloads_hidden
      ? jsonView(parsed(operation.payload))
      : null,
  );
}
