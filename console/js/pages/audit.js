// Who did what, and who was refused.

import { get } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { plural } from "../core/format.js";
import { go, query, to } from "../core/router.js";
import { button, card, empty, head } from "../ui/parts.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

const FIELDS = [
  ["actor", "Actor"],
  ["action", "Action, such as key.create"],
  ["object", "Object id"],
];

export async function page({ place, signal }) {
  const asked = query();
  const change = (changes) => go(to(["audit"], { ...asked, cursor: "", ...changes }));
  const list = h("div");
  fill(
    place,
    head("Audit", { sub: "Every change and every refusal, newest first" }),
    h(
      "form.filters",
      {
        onsubmit: (event) => (
          event.preventDefault(),
          change(Object.fromEntries(FIELDS.map(([name]) => [name, event.target.elements[name].value.trim()])))
        ),
      },
      FIELDS.map(([name, label]) =>
        h("input", {
          type: "search",
          name,
          id: `filter-${name}`,
          placeholder: label,
          "aria-label": label,
          value: asked[name] ?? "",
        }),
      ),
      h(
        "select",
        { id: "filter-outcome", "aria-label": "Outcome", onchange: (event) => change({ outcome: event.target.value }) },
        [
          ["", "Every outcome"],
          ["allowed", "allowed"],
          ["denied", "denied"],
          ["failed", "failed"],
        ].map(([value, text]) => h("option", { value, selected: value === (asked.outcome ?? "") }, text)),
      ),
      button("Filter", null, { type: "submit" }),
    ),
    list,
  );
  const found = await get(
    "/v1/audit",
    { limit: 50, cursor: asked.cursor, actor: asked.actor, action: asked.action, object: asked.object, outcome: asked.outcome },
    { signal },
  );
  fill(
    list,
    card(null, [
      found.items.length === 0
        ? empty("No entries", "Nothing was changed or refused that fits.")
        : table({
            label: "Audit log",
            rows: found.items,
            key: (row) => row.id,
            columns: [
              { head: "When", class: "fit num end", cell: (row) => when(row.at) },
              { head: "Actor", class: "fit lead", cell: (row) => row.actor },
              { head: "Action", class: "fit", cell: (row) => h("code", row.action) },
              { head: "Object", class: "clip w-more", cell: (row) => objectOf(row) },
              {
                head: "Outcome",
                class: "fit",
                cell: (row) =>
                  h("span.tag", { class: `outcome-${row.outcome}` }, row.outcome, row.count > 1 ? ` ×${row.count}` : ""),
              },
              { head: "Why", class: "clip soft remark", cell: (row) => h("span", { title: row.reason }, row.reason ?? "") },
              {
                head: "Request",
                class: "fit wide-only",
                cell: (row) => h("span.mono.muted.small", { title: row.correlationId }, (row.correlationId ?? "").slice(-8)),
              },
            ],
          }),
      h(
        "div.pager",
        h("span", plural(found.items.length, "row")),
        h("span.push"),
        button("Newest", () => change({}), { disabled: !asked.cursor }),
        button("Older", () => change({ cursor: found.nextCursor }), { glyph: "right", disabled: !found.nextCursor }),
      ),
    ]),
  );
}

function objectOf(row) {
  const id = row.objectId ?? "";
  if (row.objectKind === "run" && id.startsWith("inv_") && !id.includes(" "))
    return h("a.mono.id", { href: to(["invocations", id]), title: id }, id);
  if (row.objectKind === "entrypoint" && id.startsWith("ep_"))
    return h("a.mono.id", { href: to(["entrypoints", id]), title: id }, id);
  return h("span", h("span.muted", `${row.objectKind} `), h("span.mono", id));
}
