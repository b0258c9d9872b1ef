// The keyboard: search, going places, and moving in lists.

import { h } from "../core/dom.js";
import { go, to } from "../core/router.js";
import { open } from "./dialog.js";
import { openPalette } from "./palette.js";
import { places } from "./shell.js";

const CHORD_MS = 1200;
let chord = 0;
let bound = false;

export function bindKeys() {
  if (bound) return;
  bound = true;
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]"))
      return;
    if (chord > Date.now()) {
      chord = 0;
      const place = places().find((candidate) => candidate.key === event.key);
      if (place) {
        event.preventDefault();
        go(to([place.id].filter(Boolean)));
      }
      return;
    }
    const act = {
      "/": openPalette,
      "?": help,
      g: () => (chord = Date.now() + CHORD_MS),
      j: () => move(1),
      k: () => move(-1),
      x: toggle,
      n: nextFailed,
    }[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
}

const isTyping = (target) =>
  target instanceof Element && target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

function rows() {
  return [...document.querySelectorAll("main [data-row]")].filter((row) => row.offsetParent !== null);
}

function move(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement?.closest?.("[data-row]"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function toggle() {
  document.activeElement?.closest?.("[data-row]")?.querySelector("input[type=checkbox]")?.click();
}

/** On the page of a run. */
function nextFailed() {
  document.getElementById("next-failed")?.click();
}

export function help() {
  const pages = places().map((place) => `${place.key} ${place.word.toLowerCase()}`);
  const keys = [
    [["/", "Ctrl K"], "search: ids, entrypoints, functions, pages"],
    [["j", "k"], "next and previous row"],
    [["Enter"], "open the row"],
    [["x"], "choose the row"],
    [["n"], "the next operation that failed, on the page of a run"],
    [["g", "…"], `go to a page: ${pages.join(", ")}`],
    [["Esc"], "close what is open"],
    [["?"], "this list"],
  ];
  open("Keyboard", () =>
    h(
      "div.keys",
      keys.map(([names, text]) => [
        h(
          "div",
          names.map((name) => [h("kbd", name), " "]),
        ),
        h("div.soft", text),
      ]),
    ),
  );
}
