// What failed, grouped by what went wrong. Failed runs and dead letters can be retried together.

import { get, REST } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { inStatus } from "../core/lists.js";
import { failureKey, fingerprint } from "../core/fingerprint.js";
import { entrypoint, errorName, number, plural } from "../core/format.js";
import { go, query, render, to } from "../core/router.js";
import { may } from "../core/session.js";
import { errorRemark } from "../run/undone.js";
import { controlAll, tellOutcome } from "../ui/bulk.js";
import { ask } from "../ui/dialog.js";
import { button, card, empty, head } from "../ui/parts.js";
import { badge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

/** Failures that are read to be grouped, the newest, unless the address says how many; and the most. */
const READ = 1000;
const READ_MAX = 20000;

/** The runs of one group: the list of invocations, narrowed to this failure. */
export function groupAddress(record, { status = "", read = "" } = {}) {
  return to(["invocations"], {
    status: status || "failed,dead_lettered",
    entrypoint: record.entrypoint_id,
    failure: failureKey(record),
    read,
  });
}

export async function page({ place, signal }) {
  const asked = query();
  const body = h("div.stack");
  fill(place, head("Failures", { sub: "Failed runs and dead letters, grouped by error" }), filters(asked), body);
  const statuses = asked.status ? [asked.status] : ["failed", "dead_lettered"];
  const read = Math.min(Math.max(Number.parseInt(asked.read, 10) || READ, 1), READ_MAX);
  const { items: records, more } = await inStatus(statuses, {
    limit: read,
    signal,
    tell: (count) => fill(body, h("p.muted", `Reading… ${number(count)} so far`)),
  });
  const all = more ? await counted(statuses, signal) : records.length;
  if (signal.aborted) return;
  const groups = [...grouped(records)]
    .map(([key, items]) => ({ key, items, first: items.at(-1), last: items[0] }))
    .sort((a, b) => b.items.length - a.items.length);
  if (groups.length === 0)
    return fill(
      body,
      card(
        null,
        empty(
          "Nothing has failed",
          "Failed runs appear here and can be retried for a day; then they are dead letters, which can be retried, too.",
        ),
      ),
    );
  const most = groups[0].items.length;
  fill(
    body,
    more ? extent(records.length, all, read, asked) : null,
    card(
      null,
      table({
        label: "Groups of failures",
        rows: groups,
        key: (group) => `g${groups.indexOf(group)}`,
        href: (group) =>
          group.items.length === 1
            ? to(["invocations", group.last.id])
            : groupAddress(group.last, { status: asked.status, read: asked.read }),
        columns: [
          {
            head: "Error",
            class: "clip lead",
            cell: (group) => [
              h("div.clip", errorRemark(group.last)),
              h(
                "div.small.muted.clip",
                errorName(group.last.error?.error_type_id),
                " · ",
                entrypoint(group.last.entrypoint_id).name,
                " ",
                entrypoint(group.last.entrypoint_id).version,
              ),
            ],
          },
          {
            head: "Runs",
            class: "fit end",
            cell: (group) =>
              h(
                "span.bar-cell",
                h("i", { style: { width: `${Math.max(3, (group.items.length / most) * 64)}px` } }),
                h("span.num", number(group.items.length)),
              ),
          },
          { head: "Status", class: "fit", cell: (group) => [...new Set(group.items.map((item) => item.status))].map(badge) },
          { head: "First", class: "fit num wide-only", cell: (group) => when(group.first.timestamps.created_at) },
          { head: "Last", class: "fit num", cell: (group) => when(group.last.timestamps.created_at) },
          {
            head: "",
            class: "fit",
            cell: (group) =>
              may("runs:retry") ? button("Retry all", () => retry(group), { kind: "small", glyph: "retry" }) : null,
          },
        ],
      }),
    ),
  );
}

/** How many there are in these statuses. */
async function counted(statuses, signal) {
  const { items } = await get(`${REST}/invocations:counts`, {}, { signal });
  return items.filter((item) => statuses.includes(item.status)).reduce((sum, item) => sum + item.count, 0);
}

/** Groups of a part say so before they are read: what is rare or old may not be among them. */
function extent(count, all, read, asked) {
  const next = Math.min(read * 5, READ_MAX);
  return h(
    "p.muted",
    { id: "extent" },
    `Only the newest ${number(count)} of ${number(Math.max(all, count + 1))} failures are grouped here; older ones are not in these figures. `,
    next > read ? h("a", { href: to(["failures"], { ...asked, read: next }) }, `Group the newest ${number(next)}`) : null,
  );
}

function grouped(records) {
  const groups = new Map();
  for (const record of records) {
    const key = fingerprint(record);
    groups.set(key, [...(groups.get(key) ?? []), record]);
  }
  return groups;
}

function filters(asked) {
  return h(
    "div.filters",
    h(
      "select",
      { id: "filter-status", "aria-label": "Status", onchange: (event) => go(to(["failures"], { ...asked, status: event.target.value })) },
      [
        ["", "Failed and dead letters"],
        ["failed", "Failed"],
        ["dead_lettered", "Dead letters"],
      ].map(([value, text]) => h("option", { value, selected: value === (asked.status ?? "") }, text)),
    ),
  );
}

function retry(group) {
  const progress = h("p.muted");
  ask(`Retry ${plural(group.items.length, "invocation")}?`, {
    text: [group.last.error?.message ?? "", progress],
    verb: "Retry all",
    act: async () => {
      const outcome = await controlAll(
        "retry",
        group.items.map((item) => item.id),
        (done) => fill(progress, `${number(done)} of ${number(group.items.length)}`),
      );
      tellOutcome("Retry", outcome);
      render();
    },
  });
}
