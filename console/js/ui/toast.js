// A line about what just happened, read out to those who listen, gone after a while.

import { h } from "../core/dom.js";

const SHOWN_MS = 5000;
let place = null;

export function toast(text, kind = "good") {
  if (!place) {
    place = h("div.toasts", { role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  const item = h("div.toast", { class: kind }, text);
  place.append(item);
  while (place.children.length > 4) place.firstChild.remove();
  setTimeout(() => item.remove(), SHOWN_MS);
}
