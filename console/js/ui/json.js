// A value shown as a tree of text. Strings that hold JSON are shown as what they hold.

import { h } from "../core/dom.js";
import { bytes } from "../core/format.js";
import { copyButton } from "./parts.js";

const OPEN_DEPTH = 3;
const ITEMS_SHOWN = 200;
const TEXT_SHOWN = 4000;

export function jsonView(value) {
  return h(
    "div.json",
    h(
      "div.tools",
      copyButton(() => JSON.stringify(value, null, 2), "JSON"),
    ),
    h("div.root", node(value, 0)),
  );
}

/** The payloads of events are texts; most of them are JSON. */
export function parsed(text) {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** `before` is the member's name, which stands on the same line. */
function node(value, depth, before = null) {
  if (value === null || value === undefined) return h("div", before, h("span.b", "null"));
  if (typeof value === "string") return h("div", before, string(value));
  if (typeof value === "number") return h("div", before, h("span.n", String(value)));
  if (typeof value === "boolean") return h("div", before, h("span.b", String(value)));
  const list = Array.isArray(value);
  const entries = list ? value.map((item, at) => [at, item]) : Object.entries(value);
  const [left, right] = list ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return h("div", before, h("span.p", `${left}${right}`));
  const peek = h("span.peek.p", ` ${entries.length} ${right}`);
  const inside = entries
    .slice(0, ITEMS_SHOWN)
    .map(([key, item]) => node(item, depth + 1, list ? null : [h("span.k", JSON.stringify(key)), h("span.p", ": ")]));
  const rest = entries.length > ITEMS_SHOWN ? h("div.p", `… ${entries.length - ITEMS_SHOWN} more; copy to see all`) : null;
  return h(
    "details",
    { open: depth < OPEN_DEPTH },
    h("summary", before, h("span.p", left), peek),
    h("div.in", inside, rest),
    h("span.p", right),
  );
}

function string(value) {
  const text = value.length > TEXT_SHOWN ? value.slice(0, TEXT_SHOWN) : value;
  return h(
    "span",
    h("span.s", JSON.stringify(text)),
    value.length > TEXT_SHOWN ? h("span.p", ` … ${bytes(value.length)} in all`) : null,
  );
}
