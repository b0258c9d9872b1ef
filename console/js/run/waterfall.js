// The timeline: one row per operation, on one axis of time. Colour and pattern tell queue, run, wait and retry apart.
//
// It scrolls by itself and makes only the rows that are seen, so ten thousand operations cost as much as forty. Which rows there
// are and how they are folded is `rows.js`; how a row looks is `lane.js`.

import { fill, h } from "../core/dom.js";
import { number, plural } from "../core/format.js";
import { button } from "../ui/parts.js";
import { axis, foldLine, isSeen, lane, put, scaleOf, total } from "./lane.js";
import { arrange } from "./rows.js";

/** Rows beyond both ends of what is seen, so that the keyboard finds the next one. */
const BEYOND = 8;
/** With fewer operations there is nothing to filter. */
const TOOLS_FROM = 10;
/** As the style sheet has it. */
const NARROW = matchMedia("(max-width: 720px)");
const rowHeight = () => (NARROW.matches ? 45 : 30);

/**
 * `onChoose` is called with the id of an operation whose row is pressed, `onFilter` with what is asked for by the tools:
 * `{show}` or `{find}`.
 */
export class Timeline {
  constructor({ signal, onChoose, onFilter }) {
    Object.assign(this, { onChoose, onFilter, opened: new Map(), lines: [], failures: [], range: "" });
    this.chips = h("span.chips", { role: "group", "aria-label": "Which operations" });
    this.find = h("input", {
      type: "search",
      id: "wf-find",
      placeholder: "Find an operation",
      "aria-label": "Find an operation",
      oninput: (event) => this.onFilter({ find: event.target.value.trim() }),
    });
    this.next = h("span");
    this.none = h("span.muted.small", { role: "status" });
    this.tools = h("div.wf-tools", this.chips, this.find, this.next, this.none);
    this.top = h("div.wf-top");
    this.head = h("div");
    this.window = h("div.wf-window");
    this.body = h("div.wf-body", this.window);
    this.scroller = h("div.wf-scroll", { tabindex: "-1", onscroll: () => this.paint() }, this.top, this.head, this.body);
    this.element = h(
      "div.waterfall",
      { role: "group", "aria-label": "What happened, over time" },
      this.tools,
      this.scroller,
      legend(),
    );
    const sizes = new ResizeObserver(() => {
      this.range = "";
      this.paint();
    });
    sizes.observe(this.scroller);
    signal.addEventListener("abort", () => sizes.disconnect(), { once: true });
  }

  /** Shows the model as it is now. `round` is `{from, to}` of the round that is shown, or nothing for all of them. */
  update(model, { now, chosen = null, round = null, show = "all", find = "" }) {
    Object.assign(this, { model, chosen, show, findText: find });
    this.scale = scaleOf(model, round, now);
    const seen = (row) => row.spans.length === 0 || row.spans.some((span) => isSeen(span, this.scale));
    const arranged = arrange(model, { show, text: find, opened: this.opened, chosen, seen });
    Object.assign(this, { lines: arranged.lines, failures: arranged.failures });
    this.drawTools(arranged);
    this.range = "";
    this.paint();
  }

  /** Moves everything to a new now without making it again. */
  grow(at) {
    const { scale } = this;
    if (!scale) return;
    scale.measure(at);
    this.drawAxis();
    for (const [bar, span] of scale.bars) put(bar, span, scale);
    for (const [cell, row] of scale.totals) cell.textContent = total(row, scale);
  }

  /** Scrolls to a row, if it is not seen, and gives it the focus if that is wanted. */
  reveal(id, { focus = false } = {}) {
    const at = this.lines.findIndex((line) => line.key === id);
    if (at < 0) return;
    const height = rowHeight();
    const top = this.body.offsetTop + at * height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop + this.top.offsetHeight || top + height > scrollTop + clientHeight)
      this.scroller.scrollTop = Math.max(0, top + (height - clientHeight - this.top.offsetHeight) / 2);
    this.paint();
    const row = document.getElementById(`op-${id}`);
    if (!focus || !row) return;
    row.focus({ preventScroll: true });
    // The timeline itself may lie beyond the window's edge.
    row.closest(".wf-row").scrollIntoView({ block: "nearest" });
  }

  /** The failure after the chosen one, in the order of the rows; after the last comes the first. */
  nextFailure() {
    const at = this.failures.indexOf(this.chosen);
    return this.failures[(at + 1) % this.failures.length] ?? null;
  }

  drawTools({ all, active, failures }) {
    const asked = this.show !== "all" || this.findText !== "";
    this.tools.hidden = all < TOOLS_FROM && failures.length < 2 && !asked;
    if (this.find !== document.activeElement && this.find.value.trim() !== this.findText) this.find.value = this.findText;
    const chip = (name, word, count) =>
      h(
        "button.chip",
        {
          type: "button",
          id: `show-${name}`,
          "aria-pressed": String(this.show === name),
          class: count === 0 && this.show !== name ? "none" : "",
          onclick: () => this.onFilter({ show: name }),
        },
        word,
        h("span.n", number(count)),
      );
    // What is typed into stays where it is.
    fill(
      this.chips,
      chip("all", "All", all),
      chip("failed", "Failed only", failures.length),
      chip("active", "Active", active),
    );
    fill(
      this.next,
      failures.length > 0
        ? button("Next failed", () => this.onChoose(this.nextFailure(), { jump: true }), {
            kind: "small",
            glyph: "down",
            id: "next-failed",
          })
        : null,
    );
    this.none.textContent = this.lines.length === 0 && asked ? "No operation fits." : "";
  }

  drawAxis() {
    const width = this.head.querySelector(".wf-track")?.clientWidth || (NARROW.matches ? 140 : 600);
    fill(this.top, axis(this.scale, this.model.marks, width));
  }

  /** Makes the rows that are seen, unless they stand there. */
  paint() {
    const { scale, model } = this;
    if (!scale) return;
    const height = rowHeight();
    const { scrollTop, clientHeight } = this.scroller;
    const room = Math.ceil((clientHeight || 600) / height) + 2 * BEYOND;
    const first = Math.max(0, Math.min(Math.floor((scrollTop - this.body.offsetTop) / height) - BEYOND, this.lines.length - room));
    const last = Math.min(this.lines.length, first + room);
    const range = `${first} ${last}`;
    if (range === this.range) return;
    const whole = this.range === "";
    this.range = range;
    // The two rows above the operations stay; everything else is made anew.
    const kept = whole ? 0 : this.kept;
    scale.bars.length = kept === 0 ? 0 : kept.bars;
    scale.totals.length = kept === 0 ? 0 : kept.totals;
    if (whole) {
      this.drawHead();
      this.kept = { bars: scale.bars.length, totals: scale.totals.length };
      this.drawAxis();
    }
    this.body.style.setProperty("height", `${this.lines.length * height}px`);
    this.window.style.setProperty("top", `${first * height}px`);
    fill(
      this.window,
      this.lines.slice(first, last).map((line) => this.drawLine(line, model)),
    );
  }

  drawHead() {
    const { model, scale, chosen } = this;
    const handler = {
      id: "handler",
      name: model.isPlan ? "run" : "handler",
      spans: model.handler.spans,
      note: model.handler.invocations > 1 ? plural(model.handler.invocations, "call") : "",
    };
    const undo = model.undo?.spans.some((span) => isSeen(span, scale)) ? model.undo : null;
    fill(
      this.head,
      lane(handler, scale, { kind: "top" }),
      undo
        ? lane({ ...undo, note: undo.trigger ?? "" }, scale, { kind: "undo", chosen: chosen === "undo", onChoose: this.onChoose })
        : null,
    );
  }

  drawLine(line) {
    if (line.fold) return foldLine(line, () => this.turn(line.opens ?? line.key, true));
    const { operation, depth, totals, group } = line;
    return lane(operation, this.scale, {
      depth,
      totals,
      chosen: operation.id === this.chosen,
      onChoose: this.onChoose,
      group: group && { ...group, toggle: () => this.turn(operation.id, !group.open) },
    });
  }

  /** Opens or closes a group or a fold; it stays so while the page is open. */
  turn(key, open) {
    this.opened.set(key, open);
    this.onFilter({});
  }
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
