// Questions that need an answer before anything else. The browser's own dialog keeps the focus inside and Escape working.

import { h } from "../core/dom.js";
import { button, failure } from "./parts.js";

/** Opens a dialog; `body` gets a function that closes it. */
export function open(title, body, { wide = false, label = title } = {}) {
  const dialog = h("dialog", { "aria-label": label, class: wide ? "wide" : "" });
  const close = () => dialog.close();
  dialog.append(title ? h("h2", title) : "", body(close));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Asks before something is done, does it, and says why if it was refused. `act` gets the fields' values.
 */
export function ask(title, { text = null, fields = [], verb, keep = "Not now", danger = false, wide = false, act }) {
  open(
    title,
    (close) => {
      const place = h("div");
      const go = button(verb, null, { kind: danger ? "danger" : "primary", type: "submit" });
      const form = h(
        "form",
        {
          onsubmit: async (event) => {
            event.preventDefault();
            go.disabled = true;
            place.replaceChildren();
            try {
              await act(Object.fromEntries(fields.map((field) => [field.name, field.read()])));
              close();
            } catch (problem) {
              place.replaceChildren(failure(problem));
              go.disabled = false;
            }
          },
        },
        text ? h("p", text) : null,
        fields.map((field) => field.element),
        place,
        h("div.dialog-actions", button(keep, close), go),
      );
      return form;
    },
    { wide },
  );
}

export function textField(name, label, { value = "", hint = null, type = "text", placeholder = "" } = {}) {
  const input = h("input", { id: `ask-${name}`, type, value, placeholder, autocomplete: "off", spellcheck: "false" });
  return {
    name,
    read: () => input.value.trim(),
    element: h("label.field", h("span.label", label), input, hint ? h("span.hint", hint) : null),
  };
}

/** JSON, checked before it is sent. */
export function jsonField(name, label, { value = "", hint = null, rows = 5 } = {}) {
  const input = h("textarea.mono", { id: `ask-${name}`, rows, spellcheck: "false", value });
  const read = () => {
    const text = input.value.trim();
    if (!text) return null;
    try {
      return JSON.parse(text);
    } catch (error) {
      throw Object.assign(new Error(`${label} is not JSON: ${error.message}`), { title: "Please check the JSON" });
    }
  };
  return { name, read, element: h("label.field", h("span.label", label), input, hint ? h("span.hint", hint) : null) };
}
