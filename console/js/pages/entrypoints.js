// The registry: what can be run.

import { get, REST } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { entrypoint } from "../core/format.js";
import { go, query, to } from "../core/router.js";
import { card, empty, entrypointName, head } from "../ui/parts.js";
import { life } from "../ui/status.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

const LIVES = ["draft", "active", "deprecated", "disabled", "archived"];

export async function page({ place, signal }) {
  // Until the list is there, there is nothing to filter.
  let draw = () => {};
  const asked = query();
  const body = h("div");
  fill(
    place,
    head("Entrypoints", { sub: "Functions and workflows that can be called" }),
    h(
      "div.filters",
      h(
        "select",
        {
          id: "filter-status",
          "aria-label": "Status",
          onchange: (event) => go(to(["entrypoints"], { ...asked, status: event.target.value })),
        },
        [["", "All but archived"], ...LIVES.map((name) => [name, name])].map(([value, text]) =>
          h("option", { value, selected: value === (asked.status ?? "") }, text),
        ),
      ),
      h("input", {
        type: "search",
        id: "filter-name",
        placeholder: "Filter by name",
        "aria-label": "Filter by name",
        oninput: (event) => draw(event.target.value.trim().toLowerCase()),
      }),
    ),
    body,
  );
  const found = await get(`${REST}/entrypoints`, { limit: 200, status: asked.status }, { signal });
  draw = (text) => {
    const items = found.items.filter((item) => `${item.entrypoint_id} ${item.title}`.toLowerCase().includes(text));
    fill(
      body,
      card(
        null,
        items.length === 0
          ? nothing(found.items.length > 0 || asked.status)
          : table({
              label: "Entrypoints",
              rows: items,
              key: (row) => row.id,
              href: (row) => to(["entrypoints", row.id]),
              columns: [
                { head: "Name", class: "clip lead", cell: (row) => entrypointName(row.entrypoint_id) },
                { head: "Title", class: "clip soft", cell: (row) => row.title },
                {
                  head: "Kind",
                  class: "fit",
                  cell: (row) => h("span.tag", entrypoint(row.entrypoint_id).isWorkflow ? "workflow" : "function"),
                },
                { head: "Version", class: "fit num", cell: (row) => row.version },
                { head: "Status", class: "fit end", cell: (row) => life(row.status) },
                { head: "Updated", class: "fit num", cell: (row) => when(row.updated_at ?? row.created_at) },
              ],
            }),
      ),
      found.page_info.has_more ? h("p.card-note", "The newest 200 are shown; the filter by status finds others.") : null,
    );
  };
  draw("");
}

const nothing = (filtered) =>
  filtered
    ? empty("Nothing matches", "No entrypoint fits this filter.")
    : empty(
        "No entrypoints yet",
        "Write a function or a workflow in Starlark and register it while the server runs.",
        "printf 'def main(ctx, input):\\n    return {\"hello\": input.name}\\n' > hello.star\nservo entrypoints register hello.star --name demo.app.hello --activate",
      );
