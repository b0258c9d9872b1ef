// The waterfall: one row per operation, on one axis of time. Colour and pattern tell queue, run, wait and retry apart.

import { fill, h } from "../core/dom.js";
import { absolute, duration, short } from "../core/format.js";
import { to } from "../core/router.js";
import { icon } from "../ui/icons.js";
import { dot } from "../ui/status.js";

const WORDS = { queue: "queued", run: "running", wait: "waiting", retry: "before the next try", undo: "undoing" };
const GLYPHS = { step: "right", wait: "waiting", callback: "user", invoke: "invocations", context: "down" };
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 216e5,
  432e5, 864e5, 1728e5, 6048e5,
];
const ROWS_MAX = 400;

/**
 * `chosen` is the id of the operation whose details are shown. The element has a function `grow`, which moves everything to
 * a new now without making it again.
 */
export function waterfall(model, { now, chosen, onChoose, round = null }) {
  const begin = round?.from ?? model.from;
  const scale = { now, bars: [], totals: [], begin, end: begin, span: 1 };
  const measure = (at) => {
    scale.now = at;
    scale.end = round ? (round.to ?? at) : Math.max(model.to ?? at, model.last ?? begin);
    scale.span = Math.max(scale.end - begin, 1);
  };
  measure(now);
  const rows = model.rows().filter((row) => row.spans.length === 0 || row.spans.some((span) => isSeen(span, scale)));
  const shown = rows.slice(0, ROWS_MAX);
  const top = h("div", axis(scale, model.marks));
  const element = h(
    "div.waterfall",
    { role: "group", "aria-label": "What happened, over time" },
    top,
    lane(
      {
        id: "handler",
        name: model.isPlan ? "run" : "handler",
        spans: model.handler.spans,
        note: model.handler.invocations > 1 ? `${model.handler.invocations} calls` : "",
      },
      scale,
      { top: true },
    ),
    shown.map((operation) => lane(operation, scale, { chosen: operation.id === chosen, onChoose })),
    rows.length > shown.length ? h("p.card-note", `${rows.length - shown.length} more operations are in the raw events.`) : null,
    model.undo
      ? lane({ ...model.undo, note: model.undo.trigger ?? "" }, scale, { undo: true, chosen: chosen === "undo", onChoose })
      : null,
    legend(),
  );
  element.grow = (at) => {
    measure(at);
    fill(top, axis(scale, model.marks));
    for (const [bar, span] of scale.bars) put(bar, span, scale);
    for (const [cell, row] of scale.totals) cell.textContent = total(row, scale);
  };
  return element;
}

/** Whether a span is in the round that is shown. */
const isSeen = (span, scale) => span.from <= scale.end && (span.to ?? scale.now) >= scale.begin;

const place = (scale, at) => Math.min(100, Math.max(0, ((at - scale.begin) / scale.span) * 100));

function put(bar, span, scale) {
  const left = place(scale, span.from);
  bar.style.setProperty("left", `${left}%`);
  bar.style.setProperty("width", `${Math.max(0, place(scale, span.to ?? scale.now) - left)}%`);
}

function total(row, scale) {
  const spans = row.spans.filter((span) => isSeen(span, scale));
  return spans.length > 0 ? duration((spans.at(-1).to ?? scale.now) - spans[0].from) : "";
}

function axis(scale, marks) {
  const step = STEPS.find((size) => scale.span / size <= 7) ?? 6048e5 * Math.ceil(scale.span / 6048e5 / 7);
  const ticks = [];
  for (let at = 0; at <= scale.span; at += step) ticks.push(at);
  return h(
    "div.wf-axis",
    { "aria-hidden": "true" },
    h("div.wf-name"),
    h(
      "div.wf-track",
      ticks.map((at) => h("span.wf-tick", { style: { left: `${(at / scale.span) * 100}%` } }, at === 0 ? "0" : short(at))),
      marks
        .filter((mark) => mark.at > scale.begin && mark.at <= scale.end)
        .slice(-40)
        .map((mark) =>
          h("span.wf-mark", {
            class: mark.kind,
            title: `${mark.text}, ${absolute(mark.at)}`,
            style: { left: `${place(scale, mark.at)}%` },
          }),
        ),
    ),
    h("div.wf-took"),
  );
}

function lane(row, scale, { chosen = false, onChoose = null, top = false, undo = false }) {
  const label = `${row.name}${row.status ? `, ${row.status}` : ""}, ${total(row, scale)}`;
  const sum = h("div.wf-took.num", total(row, scale));
  scale.totals.push([sum, row]);
  const body = [
    h(
      "div.wf-name",
      { style: { "padding-left": `${10 + (row.depth ?? 0) * 14}px` } },
      row.status ? dot(row.status) : icon("functions"),
      row.kind && row.kind !== "step" ? h("span.wf-kind", { title: row.kind }, icon(GLYPHS[row.kind])) : null,
      h("span.clip", { title: row.name }, row.name),
      row.attempts > 1 ? h("span.tag", { title: "tries" }, `×${row.attempts}`) : null,
      row.note ? h("span.muted.small.clip", row.note) : null,
      row.child
        ? h(
            "a.link.small",
            { href: to(["invocations", row.child]), title: row.child, onclick: (event) => event.stopPropagation() },
            "run",
          )
        : null,
    ),
    h(
      "div.wf-track",
      row.spans.filter((span) => isSeen(span, scale)).map((span) => bar(span, scale)),
    ),
    sum,
  ];
  const more = { class: `${top ? "top" : ""} ${undo ? "undo" : ""} ${chosen ? "chosen" : ""}` };
  if (!onChoose) return h("div.wf-row", more, body);
  return h(
    "div.wf-row",
    {
      ...more,
      id: `op-${row.id}`,
      role: "button",
      tabindex: "0",
      "aria-label": label,
      "aria-pressed": String(chosen),
      data: { row: row.id },
      onclick: () => onChoose(row.id),
      onkeydown: (event) =>
        (event.key === "Enter" || event.key === " ") &&
        event.target === event.currentTarget &&
        (event.preventDefault(), onChoose(row.id)),
    },
    body,
  );
}

function bar(span, scale) {
  const end = span.to ?? scale.now;
  const attempt = span.kind === "run" && span.attempt > 1 ? `try ${span.attempt}, ` : "";
  const title = `${attempt}${WORDS[span.kind] ?? span.kind} ${span.bound ? "at most " : ""}${duration(end - span.from)}${span.to === null ? " so far" : ""}\n${absolute(span.from)}${span.error?.ErrorMessage ? `\n${span.error.ErrorMessage}` : ""}`;
  const element = h("span.wf-bar", { class: `${span.kind} ${span.bad ? "bad" : ""} ${span.to === null ? "open" : ""}`, title });
  put(element, span, scale);
  scale.bars.push([element, span]);
  return element;
}

function legend() {
  return h(
    "div.wf-legend",
    { "aria-hidden": "true" },
    [
      ["queue", "queued"],
      ["run", "running"],
      ["wait", "waiting"],
      ["retry", "before the next try"],
      ["bad", "failed try"],
      ["undo", "undoing"],
    ].map(([kind, text]) => h("span", h("i", { class: kind }), text)),
  );
}
