// Why things wait: every run that has not ended and does not run says what it waits for.

import { get, REST } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { inStatus } from "../core/lists.js";
import { number } from "../core/format.js";
import { go, query, to } from "../core/router.js";
import { ABOUT, waitText } from "../run/waits.js";
import { card, empty, entrypointName, head, runLink } from "../ui/parts.js";
import { badge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

const WAITS = ["queued", "suspended", "compensating"];

export async function page({ place, signal }) {
  const asked = query();
  const [found, counts] = await Promise.all([
    inStatus(WAITS, { oldest: true, signal }),
    get(`${REST}/invocations:counts`, {}, { signal }),
  ]);
  const all = counts.items.filter((item) => WAITS.includes(item.status)).reduce((sum, item) => sum + item.count, 0);
  const causeOf = (record) => record.blocked_by?.[0]?.cause ?? "unknown";
  const causes = new Map();
  for (const record of found.items) causes.set(causeOf(record), (causes.get(causeOf(record)) ?? 0) + 1);
  const rows = found.items.filter((record) => !asked.cause || causeOf(record) === asked.cause);
  const chip = (cause, count) =>
    h(
      "button.chip",
      {
        type: "button",
        id: `cause-${cause}`,
        "aria-pressed": String(asked.cause === cause),
        title: ABOUT[cause]?.[1],
        onclick: () => go(to(["waiting"], { cause: asked.cause === cause ? "" : cause })),
      },
      ABOUT[cause]?.[0] ?? cause,
      h("span.n", number(count)),
    );
  fill(
    place,
    head("Waiting", {
      sub:
        all > found.items.length
          ? `The oldest ${number(found.items.length)} of ${number(all)} runs that wait`
          : all === 1
            ? "1 run waits"
            : `${number(all)} runs wait`,
    }),
    causes.size > 0
      ? h(
          "div.filters",
          h(
            "div.chips",
            { role: "group", "aria-label": "Cause" },
            [...causes].sort((a, b) => b[1] - a[1]).map(([cause, count]) => chip(cause, count)),
          ),
        )
      : null,
    asked.cause && ABOUT[asked.cause] ? h("p.muted", { style: { "margin-bottom": "12px" } }, ABOUT[asked.cause][1]) : null,
    card(
      null,
      rows.length === 0
        ? empty("Nothing waits", "Every run has ended or is running.")
        : table({
            label: "Waiting runs",
            rows,
            key: (row) => row.id,
            href: (row) => to(["invocations", row.id]),
            columns: [
              { head: "Status", class: "fit end", cell: (row) => badge(row.status) },
              { head: "Entrypoint", class: "clip w-name lead", cell: (row) => entrypointName(row.entrypoint_id) },
              {
                head: "Waits for",
                class: "clip w-more remark",
                cell: (row) => h("span", { title: waitText(row) }, waitText(row) || "its turn"),
              },
              {
                head: "Continues",
                class: "fit num",
                cell: (row) => (row.earliest_at ? when(row.earliest_at) : h("span.muted", "when it comes")),
              },
              { head: "Id", class: "fit wide-only", cell: (row) => runLink(row.id, { tabindex: "-1" }) },
              { head: "Since", class: "fit num", cell: (row) => when(row.timestamps.suspended_at ?? row.timestamps.created_at) },
            ],
          }),
    ),
  );
}
