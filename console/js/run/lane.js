// One row of the timeline, and the axis above the rows: bars on one scale of time.

import { h } from "../core/dom.js";
import { absolute, duration, number, plural, short } from "../core/format.js";
import { to } from "../core/router.js";
import { icon } from "../ui/icons.js";
import { dot } from "../ui/status.js";

const WORDS = { queue: "queued", run: "running", wait: "waiting", retry: "before the next try", undo: "undoing" };
const GLYPHS = { step: "right", wait: "waiting", callback: "user", invoke: "invocations", context: "context" };
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 216e5,
  432e5, 864e5, 1728e5, 6048e5,
];
/** What a tick's word takes, in pixels. */
const TICK = 54;
const MARKS_MAX = 40;
/** Deeper rows are not moved further to the right. */
const DEPTH_MAX = 10;

/** From when to when is drawn, and the bars that grow with it. */
export function scaleOf(model, round, now) {
  const begin = round?.from ?? model.from;
  const scale = { now, bars: [], totals: [], begin, end: begin, span: 1 };
  scale.measure = (at) => {
    scale.now = at;
    scale.end = round ? (round.to ?? at) : Math.max(model.to ?? at, model.last ?? begin);
    scale.span = Math.max(scale.end - begin, 1);
  };
  scale.measure(now);
  return scale;
}

/** Whether a span is in the part that is drawn. */
export const isSeen = (span, scale) => span.from <= scale.end && (span.to ?? scale.now) >= scale.begin;

const place = (scale, at) => Math.min(100, Math.max(0, ((at - scale.begin) / scale.span) * 100));

export function put(bar, span, scale) {
  const left = place(scale, span.from);
  bar.style.setProperty("left", `${left}%`);
  bar.style.setProperty("width", `${Math.max(0, place(scale, span.to ?? scale.now) - left)}%`);
}

export function total(row, scale) {
  const spans = row.spans.filter((span) => isSeen(span, scale));
  return spans.length > 0 ? duration((spans.at(-1).to ?? scale.now) - spans[0].from) : "";
}

/** `width` is that of the part with the bars: as many ticks as have room. */
export function axis(scale, marks, width) {
  const most = Math.max(1, Math.min(7, Math.floor(width / TICK)));
  const step = STEPS.find((size) => scale.span / size <= most) ?? 6048e5 * Math.ceil(scale.span / 6048e5 / most);
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
        .slice(-MARKS_MAX)
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

/** `group` is `{open, size, toggle}` of one whose children can be closed; `totals` say what is in it. */
export function lane(row, scale, { depth = 0, group = null, totals = null, chosen = false, onChoose = null, kind = "" }) {
  const sum = h("div.wf-took.num", total(row, scale));
  scale.totals.push([sum, row]);
  const name = [
    row.status ? dot(row.status) : icon("functions"),
    row.kind && row.kind !== "step" ? h("span.wf-kind", { title: row.kind }, icon(GLYPHS[row.kind])) : null,
    h("span.clip", { title: row.name }, row.name),
  ];
  const counts = group ? countsOf(group, totals) : null;
  return h(
    "div.wf-row",
    {
      class: `${kind} ${chosen ? "chosen" : ""} ${onChoose ? "can" : ""}`,
      onclick: onChoose ? (event) => event.target.closest("a, .wf-toggle") || onChoose(row.id) : null,
    },
    h(
      "div.wf-name",
      { style: { "padding-left": `${10 + Math.min(depth, DEPTH_MAX) * 14}px` } },
      group
        ? h(
            "button.wf-toggle",
            {
              type: "button",
              id: `group-${row.id}`,
              "aria-expanded": String(group.open),
              "aria-label": `${group.open ? "Close" : "Open"} ${row.name}, ${counts}`,
              onclick: group.toggle,
            },
            icon(group.open ? "down" : "right"),
          )
        : null,
      onChoose
        ? h(
            "button.wf-open",
            {
              type: "button",
              id: `op-${row.id}`,
              "aria-pressed": String(chosen),
              "aria-label": [row.name, row.status, total(row, scale), counts].filter(Boolean).join(", "),
              data: { row: row.id },
            },
            name,
          )
        : name,
      counts ? h("span.small.clip.counts", { class: totals.failed > 0 ? "bad-text" : "muted", title: counts }, counts) : null,
      row.attempts > 1 ? h("span.tag", { title: "tries" }, `×${row.attempts}`) : null,
      row.note ? h("span.muted.small.clip", row.note) : null,
      row.child ? h("a.link.small", { href: to(["invocations", row.child]), title: row.child }, "run") : null,
    ),
    h(
      "div.wf-track",
      { "aria-hidden": "true" },
      row.spans.filter((span) => isSeen(span, scale)).map((span) => bar(span, scale)),
    ),
    sum,
  );
}

/** What matters first: a narrow column cuts the rest. */
function countsOf(group, { failed, active }) {
  const parts = [failed > 0 ? `${number(failed)} failed` : "", active > 0 ? `${number(active)} active` : ""].filter(Boolean);
  return parts.length > 0 ? `${parts.join(", ")} of ${number(group.size)}` : plural(group.size, "child", "children");
}

/** A stretch that is folded, or what of a closed group is only counted. */
export function foldLine({ key, fold, depth }, open) {
  return h(
    "div.wf-row.fold",
    h(
      "button.wf-fold",
      {
        type: "button",
        id: key,
        data: { row: key },
        onclick: open,
        style: { "padding-left": `${10 + Math.min(depth, DEPTH_MAX) * 14}px` },
      },
      icon("down"),
      `${plural(fold.count, "more operation")}: ${fold.text}. Show`,
    ),
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
