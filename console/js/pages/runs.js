// All runs of the log: invocations, executions of functions, and runs of plans.

import { get, REST } from "../core/api.js";
import { fill, h, quiet } from "../core/dom.js";
import { plural } from "../core/format.js";
import { every } from "../core/poll.js";
import { go, query, to } from "../core/router.js";
import { button, card, empty, entrypointName, head, runLink } from "../ui/parts.js";
import { badge, STATUSES, word } from "../ui/status.js";
import { table } from "../ui/table.js";
import { took, when } from "../ui/time.js";

const REFRESH_MS = 3000;

export async function page({ place, signal }) {
  const asked = query();
  const change = (changes) => go(to(["runs"], { ...asked, cursor: "", ...changes }));
  const list = h("div");
  fill(
    place,
    head("All runs", { sub: "Everything on the log: runs of plans, executions of functions, invocations of entrypoints" }),
    h(
      "div.filters",
      h(
        "select",
        { id: "filter-status", "aria-label": "Status", onchange: (event) => change({ status: event.target.value }) },
        h("option", { value: "" }, "Every status"),
        STATUSES.map((status) => h("option", { value: status, selected: status === asked.status }, word(status))),
      ),
      h(
        "form",
        { onsubmit: (event) => (event.preventDefault(), change({ plan: event.target.elements.plan.value.trim() })) },
        h("input", {
          type: "search",
          name: "plan",
          id: "filter-plan",
          value: asked.plan ?? "",
          placeholder: "Plan or function",
          "aria-label": "Plan or function",
        }),
      ),
    ),
    list,
  );
  // A run of an entrypoint is listed by its registration; people know it by its name.
  const known = await get(`${REST}/entrypoints`, { limit: 200 }, { signal }).catch(() => ({ items: [] }));
  const names = new Map(known.items.map((item) => [item.id, item.entrypoint_id]));
  const nameOf = (row) =>
    names.has(row.planId) ? entrypointName(names.get(row.planId)) : h("span.ep-name", { title: row.planId }, row.planId);
  let before = "";
  const refresh = async () => {
    const found = await get(
      "/v1/runs",
      { limit: 50, cursor: asked.cursor, status: asked.status, planId: asked.plan },
      { signal },
    );
    const text = JSON.stringify(found);
    if (text === before || signal.aborted) return;
    before = text;
    await quiet();
    fill(
      list,
      card(null, [
        found.items.length === 0
          ? nothing(asked)
          : table({
              label: "Runs",
              rows: found.items,
              key: (row) => row.runId,
              href: (row) => to(["runs", row.runId]),
              columns: [
                { head: "Status", class: "fit end", cell: (row) => badge(row.visible) },
                { head: "Plan, function or entrypoint", class: "clip lead", cell: nameOf },
                { head: "Version", class: "fit num muted", cell: (row) => row.planVersion },
                { head: "Id", class: "fit", cell: (row) => runLink(row.runId, { tabindex: "-1" }) },
                { head: "Whole time", class: "fit num", cell: (row) => took(row.createdAt, row.finishedAt) },
                { head: "Started", class: "fit num", cell: (row) => when(row.createdAt) },
              ],
            }),
        h(
          "div.pager",
          h("span", plural(found.items.length, "row")),
          h("span.push"),
          button("Newest", () => change({}), { disabled: !asked.cursor }),
          button("Older", () => change({ cursor: found.nextCursor }), {
            glyph: "right",
            disabled: !found.nextCursor,
            id: "older",
          }),
        ),
      ]),
    );
  };
  await refresh();
  if (!asked.cursor) await every(REFRESH_MS, signal, () => refresh().catch(() => {}));
}

const nothing = (asked) =>
  Object.keys(asked).length > 0
    ? empty("Nothing matches", "No run fits these filters.")
    : empty("No runs yet", "Start a plan, invoke a function, or run an entrypoint.", "servo runs start plan.json --wait");
