// Lists: one row per thing, opened by click or Enter, chosen by checkbox or `x`, walked through with `j` and `k`.

import { h } from "../core/dom.js";
import { go } from "../core/router.js";

/**
 * `columns` are `{head, cell, class}`; `href` says where a row leads; `chosen` is a set of keys, if rows can be chosen, and
 * `name` says which row that is. On a narrow screen a row is a card: the class `lead` puts a cell on its first line, `end` to the
 * right; the rest stand below, and what has `wide-only` is left out.
 */
export function table({ label, columns, rows, key, href = null, chosen = null, onChoose = () => {}, name = key }) {
  const all =
    chosen &&
    h("input", {
      type: "checkbox",
      id: "choose-all",
      "aria-label": "Choose all on this page",
      checked: rows.length > 0 && rows.every((row) => chosen.has(key(row))),
      onchange: (event) => {
        for (const row of rows) event.target.checked ? chosen.add(key(row)) : chosen.delete(key(row));
        onChoose();
      },
    });
  return h(
    "div.table-wrap",
    h(
      "table",
      { "aria-label": label },
      h(
        "thead",
        h(
          "tr",
          chosen ? h("th.fit.choose", h("label.check-target", all)) : null,
          columns.map((column) =>
            h(
              "th",
              { class: column.class ?? "", scope: "col" },
              column.head === "" ? h("span.sr", column.hint ?? "Actions") : column.head,
            ),
          ),
        ),
      ),
      h(
        "tbody",
        rows.map((row) => tr(row, { columns, key, href, chosen, onChoose, name })),
      ),
    ),
  );
}

function tr(row, { columns, key, href, chosen, onChoose, name }) {
  const id = key(row);
  const target = href?.(row);
  const open = (event) => {
    if (!target || event.target.closest("a, button, input, label, summary")) return;
    if (event.ctrlKey || event.metaKey) window.open(target, "_blank", "noopener");
    else go(target);
  };
  return h(
    "tr",
    {
      id: `row-${id}`,
      tabindex: target ? "0" : null,
      data: { row: id },
      class: chosen?.has(id) ? "chosen" : "",
      onclick: open,
      onkeydown: (event) => event.key === "Enter" && event.target === event.currentTarget && open(event),
    },
    chosen
      ? h(
          "td.fit.choose",
          h(
            "label.check-target",
            h("input", {
              type: "checkbox",
              id: `choose-${id}`,
              "aria-label": `Choose ${name(row)}`,
              checked: chosen.has(id),
              onchange: (event) => (event.target.checked ? chosen.add(id) : chosen.delete(id), onChoose()),
            }),
          ),
        )
      : null,
    columns.map((column) => h("td", { class: column.class ?? "", data: { head: column.head } }, column.cell(row))),
  );
}
