// What failed, grouped by what went wrong. Failed runs and dead letters can be retried together.

import { fill, h } from "../core/dom.js";
import { inStatus } from "../core/lists.js";
import { entrypoint, errorName, number, plural } from "../core/format.js";
import { go, query, render, to } from "../core/router.js";
import { may } from "../core/session.js";
import { controlAll, tellOutcome } from "../ui/bulk.js";
import { ask } from "../ui/dialog.js";
import { button, card, empty, head } from "../ui/parts.js";
import { badge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

/** Failures that are grouped; the newest. */
const READ = 1000;

/** The same failure with other ids and numbers in it is the same failure. */
export function fingerprint(record) {
  const message = (record.error?.message ?? "no message")
    .replace(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/gi, "‹id›")
    .replace(/\b(inv|ep|run)_[A-Za-z0-9]+/g, "‹id›")
    .replace(/\b0x[0-9a-f]+\b|\b\d+(\.\d+)?\b/gi, "‹n›");
  return `${record.error?.error_type_id ?? ""}|${record.entrypoint_id}|${message}`;
}

export async function page({ place, signal }) {
  const asked = query();
  const body = h("div.stack");
  fill(place, head("Failures", { sub: "Failed runs and dead letters, grouped by error" }), filters(asked), body);
  const statuses = asked.status ? [asked.status] : ["failed", "dead_lettered"];
  const { items: records, more } = await inStatus(statuses, {
    limit: READ,
    signal,
    tell: (count) => fill(body, h("p.muted", `Reading… ${number(count)} so far`)),
  });
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
    card(
      null,
      table({
        label: "Groups of failures",
        rows: groups,
        key: (group) => `g${groups.indexOf(group)}`,
        href: (group) =>
          group.items.length === 1
            ? to(["invocations", group.last.id])
            : to(["invocations"], { status: statuses.join(","), entrypoint: group.last.entrypoint_id }),
        columns: [
          {
            head: "Error",
            class: "clip",
            cell: (group) => [
              h("div.clip.bad-text", { title: group.last.error?.message }, group.last.error?.message ?? "no message"),
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
            class: "fit",
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
    more
      ? h(
          "p.muted",
          `These are the newest ${number(records.length)}. Older ones follow when these are dealt with, or with a filter.`,
        )
      : null,
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
      { id: "filter-status", "aria-label": "Status", onchange: (event) => go(to(["failures"], { status: event.target.value })) },
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
