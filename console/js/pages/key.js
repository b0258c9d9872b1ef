// The server wants a key. It stays in this tab and goes nowhere else.

import { key } from "../core/api.js";
import { h } from "../core/dom.js";
import { button } from "../ui/parts.js";
import { logo } from "../ui/shell.js";

export function keyPage(problem) {
  const input = h("input", {
    id: "key",
    type: "password",
    autocomplete: "off",
    required: true,
    placeholder: "svo_…",
    "aria-label": "API key",
  });
  return h(
    "div.key-page",
    h(
      "form.card",
      {
        style: { padding: "24px" },
        onsubmit: (event) => {
          event.preventDefault();
          key.set(input.value.trim());
          location.reload();
        },
      },
      h("div.brand", logo(), "Servo"),
      problem
        ? h("p.bad-text", { role: "alert" }, "This key is not accepted. It may have ended, or been revoked.")
        : h("p.soft", "This server asks for a key. It is kept in this tab until you close it."),
      h(
        "label.field",
        h("span.label", "API key"),
        input,
        h("span.hint", "An admin makes one with ", h("code", "servo keys create"), "."),
      ),
      button("Continue", null, { kind: "primary", type: "submit" }),
    ),
  );
}
