// Whether what is shown is of now: live while the server answers, and since when it is not.

import { onContact } from "../core/api.js";
import { h } from "../core/dom.js";
import { clock, zoneOf } from "../core/format.js";

/** An element with a function `say(word, on)`: what stands there while the server answers, and whether it is of now. */
export function liveTag(signal) {
  const element = h("span.live", { role: "status" });
  let said = { word: "", on: false };
  let contact = { reachable: true, at: 0 };
  const draw = () => {
    const text = contact.reachable ? said.word : `last seen ${clock(contact.at)} ${zoneOf(contact.at)}`;
    if (element.textContent !== text) element.textContent = text;
    element.hidden = said.word === "";
    element.classList.toggle("on", contact.reachable && said.on);
  };
  element.say = (word, on = false) => {
    said = { word, on };
    draw();
  };
  onContact((now) => {
    contact = now;
    draw();
  }, signal);
  return element;
}
