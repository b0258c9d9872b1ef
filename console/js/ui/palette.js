// Search: an id goes straight to its run, a word finds entrypoints, functions and pages.

import { get, REST } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { entrypoint } from "../core/format.js";
import { go, to } from "../core/router.js";
import { icon } from "./icons.js";
import { places as pages } from "./shell.js";
import { STATUSES, word } from "./status.js";

const SHOWN = 12;
let known = { at: 0, items: [] };

/** Entrypoints and functions, asked for once in a while. */
async function names() {
  if (Date.now() - known.at < 30_000) return known.items;
  const [found, functions] = await Promise.all([
    get(`${REST}/entrypoints`, { limit: 200 }).catch(() => ({ items: [] })),
    get("/v1/functions", { limit: 200 }).catch(() => ({ items: [] })),
  ]);
  const items = [
    ...found.items.map((item) => ({
      glyph: "entrypoints",
      text: `${entrypoint(item.entrypoint_id).name} ${entrypoint(item.entrypoint_id).version}`,
      more: item.title,
      kind: "entrypoint",
      href: to(["entrypoints", item.id]),
    })),
    ...functions.items.map((item) => ({
      glyph: "functions",
      text: item.name,
      more: `version ${item.version}`,
      kind: "function",
      href: to(["functions", item.name]),
    })),
  ];
  known = { at: Date.now(), items };
  return items;
}

const places = () => [
  ...pages().map((place) => ({
    glyph: place.glyph,
    text: place.word,
    kind: "page",
    href: to([place.id].filter(Boolean)),
  })),
  ...STATUSES.map((status) => ({
    glyph: status,
    text: `Invocations: ${word(status)}`,
    kind: "filter",
    href: to(["invocations"], { status }),
  })),
];

function score(item, words) {
  const text = `${item.text} ${item.more ?? ""}`.toLowerCase();
  return words.every((part) => text.includes(part)) ? (text.startsWith(words[0] ?? "") ? 0 : 1) : -1;
}

export function openPalette() {
  if (document.querySelector("dialog.palette")) return;
  const input = h("input", {
    type: "text",
    placeholder: "Search ids, entrypoints, pages…",
    "aria-label": "Search",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = h("ul", { id: "palette-list", role: "listbox" });
  const dialog = h(
    "dialog.palette",
    { "aria-label": "Search" },
    input,
    list,
    h(
      "div.foot",
      h("span", h("kbd", "↑"), " ", h("kbd", "↓"), " choose"),
      h("span", h("kbd", "Enter"), " open"),
      h("span", h("kbd", "Esc"), " close"),
    ),
  );
  let items = [];
  let at = 0;

  const choose = (item) => {
    dialog.close();
    go(item.href);
  };
  const draw = () => {
    fill(
      list,
      items.length === 0
        ? h("li.muted", "Nothing found. A whole id opens any run.")
        : items.map((item, index) =>
            h(
              "li",
              {
                role: "option",
                id: `option-${index}`,
                "aria-selected": String(index === at),
                onclick: () => choose(item),
                onmousemove: () => at !== index && ((at = index), draw()),
              },
              icon(item.glyph),
              h("span.clip", item.text),
              item.more ? h("span.muted.clip", item.more) : null,
              h("span.push", item.kind),
            ),
          ),
    );
    input.setAttribute("aria-activedescendant", `option-${at}`);
    list.children[at]?.scrollIntoView?.({ block: "nearest" });
  };
  const search = async () => {
    const text = input.value.trim();
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (all) =>
      all
        .map((item) => [score(item, words), item])
        .filter(([rank]) => rank >= 0)
        .sort((a, b) => a[0] - b[0])
        .map(([, item]) => item);
    const ids =
      /^[A-Za-z0-9_-]{8,128}$/.test(text) && /[0-9]/.test(text)
        ? [{ glyph: "invocations", text, kind: "open the run", href: to(["invocations", text]) }]
        : [];
    const found = await names();
    if (input.value.trim() !== text) return;
    items = [...ids, ...matches([...found, ...places()])].slice(0, SHOWN);
    at = 0;
    draw();
  };
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % Math.max(1, items.length);
      draw();
    } else if (event.key === "Enter" && items[at]) {
      event.preventDefault();
      choose(items[at]);
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
  search();
}
