// Pieces that every page is made of.

import { h } from "../core/dom.js";
import { entrypoint, shortId } from "../core/format.js";
import { to } from "../core/router.js";
import { icon } from "./icons.js";
import { toast } from "./toast.js";

export function button(label, onclick, { kind = "", glyph = null, ...more } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, ...more }, glyph ? icon(glyph) : null, h("span", label));
}

/** A button without a visible word; the word is for those who do not see it, and on hover. */
export function iconButton(label, glyph, onclick, more = {}) {
  return h("button.icon-button", { type: "button", title: label, "aria-label": label, onclick, ...more }, icon(glyph));
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    toast(`${what} could not be copied: the browser does not let this page write to the clipboard`, "bad");
  }
}

export const copyButton = (text, what) =>
  iconButton(`Copy ${what}`, "copy", (event) => (event.preventDefault(), copy(typeof text === "function" ? text() : text, what)));

export function head(title, { sub = null, actions = [], crumbs = [] } = {}) {
  return h(
    "header.page-head",
    h(
      "div",
      crumbs.length > 0
        ? h(
            "nav.crumbs",
            { "aria-label": "Where this is" },
            crumbs.map(([label, href]) => [h("a", { href }, label), h("span", { "aria-hidden": "true" }, "/")]),
          )
        : null,
      h("h1", title),
      sub ? h("div.sub", sub) : null,
    ),
    h("div.actions", actions),
  );
}

export function card(title, body, { actions = null, class: extra = "" } = {}) {
  return h("section.card", { class: extra }, title === null ? null : h("header.card-head", h("h2", title), actions), body);
}

/** Nothing is here: what that means, and a command that changes it. */
export function empty(title, text, command = null) {
  return h("div.empty", h("p.empty-title", title), h("p", text), command ? snippet(command) : null);
}

export function snippet(command) {
  return h("div.snippet", h("pre", h("code", command)), copyButton(command, "command"));
}

/** What went wrong, and what to do. */
export function failure(problem, again = null) {
  const about = problem.requestId ? `request ${problem.requestId}` : null;
  return h(
    "div.failure",
    { role: "alert" },
    icon("failures"),
    h(
      "div",
      h("p.failure-title", problem.title || "That did not work"),
      h("p", problem.detail || problem.message),
      (problem.errors ?? []).length > 0
        ? h(
            "ul",
            problem.errors
              .slice(0, 20)
              .map((e) => h("li", h("code", e.path ?? e.pointer ?? e.field ?? ""), " ", e.message ?? e.reason ?? e.detail ?? "")),
          )
        : null,
      about ? h("p.muted.small.mono", about) : null,
    ),
    again ? button("Try again", again) : null,
  );
}

/** A long name breaks after its dots, and is never cut: its end tells it from others of the same application. */
const breakable = (name) => name.split(/(?<=\.)/).map((part, at) => [at > 0 ? h("wbr") : null, part]);

/** A name, with the whole address on hover. */
export function entrypointName(address, { link = null } = {}) {
  const { name, version } = entrypoint(address);
  const inside = [h("span.ep-name", breakable(name)), version ? h("span.ep-version", version) : null];
  return link ? h("a.ep", { href: link, title: address }, inside) : h("span.ep", { title: address }, inside);
}

export const runLink = (id, more = {}) => h("a.mono.id", { href: to(["invocations", id]), title: id, ...more }, shortId(id));

export function hidden() {
  return h(
    "p.hidden-note",
    icon("lock"),
    "Payloads are shown to those with the permission ",
    h("code", "payloads:read"),
    " (role operator and up).",
  );
}

export function facts(pairs) {
  return h(
    "dl.facts",
    pairs
      .filter(
        ([, value]) => value !== null && value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0),
      )
      .map(([name, value]) => h("div", h("dt", name), h("dd", value))),
  );
}
