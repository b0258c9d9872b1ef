// One function: versions with what still runs on each, aliases, and how workers reach it.

import { get } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { duration, plural } from "../core/format.js";
import { to } from "../core/router.js";
import { card, empty, facts, head, runLink, snippet } from "../ui/parts.js";
import { badge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { took, when } from "../ui/time.js";
import { REACH } from "./functions.js";

export async function page({ place, params: { name }, signal }) {
  const [found, runs] = await Promise.all([
    get(`/v1/functions/${encodeURIComponent(name)}`, {}, { signal }),
    get("/v1/runs", { planId: name, limit: 10 }, { signal }).catch(() => ({ items: [] })),
  ]);
  const { latest, versions, aliases } = found;
  const { spec } = latest;
  const open = versions.reduce((sum, version) => sum + version.openRuns, 0);
  fill(
    place,
    head(h("span.title-row", name, h("span.ep-version", `version ${latest.version}`)), {
      crumbs: [["Functions", to(["functions"])]],
      sub: [REACH[spec.reach.kind] ?? spec.reach.kind, h("span", `${plural(open, "run")} open`)],
    }),
    h(
      "div.grid",
      h(
        "div.half.stack",
        card(
          "Workers",
          h(
            "div.card-body",
            facts([
              ["Reached", REACH[spec.reach.kind] ?? spec.reach.kind],
              ["URL", spec.reach.url ? h("span.mono", spec.reach.url) : null],
              ["Address for workers", latest.workerAddress ? h("span.mono", latest.workerAddress) : null],
              ["Durable", spec.durable === false ? "no, it answers at once" : "yes"],
              ["At the same time", spec.maxConcurrent ?? "no limit of its own"],
              ["One call takes at most", spec.invocationTimeoutSeconds ? duration(spec.invocationTimeoutSeconds * 1000) : null],
              ["A run takes at most", spec.executionTimeoutSeconds ? duration(spec.executionTimeoutSeconds * 1000) : null],
            ]),
            latest.workerAddress
              ? [
                  h("h3", { style: { "margin-top": "14px" } }, "Start a worker"),
                  snippet(`AWS_LAMBDA_RUNTIME_API=${latest.workerAddress} ./${name}`),
                ]
              : null,
            [
              h("h3", { style: { "margin-top": "14px" } }, "Call it"),
              snippet(`servo functions invoke ${name} --payload '{}' --name try-1`),
            ],
          ),
        ),
        card(
          "Versions",
          table({
            label: "Versions",
            rows: versions,
            key: (row) => String(row.version),
            columns: [
              { head: "Version", class: "fit num", cell: (row) => row.version },
              {
                head: "Open runs",
                cell: (row) => (row.openRuns > 0 ? `${row.openRuns}, keep it reachable` : h("span.muted", "none: drained")),
              },
              {
                head: "Aliases",
                cell: (row) =>
                  aliases.filter((alias) => alias.version === row.version).map((alias) => h("span.tag", alias.alias)),
              },
              { head: "Published", class: "fit num", cell: (row) => when(row.createdAt) },
            ],
          }),
        ),
      ),
      h(
        "div.half.stack",
        card(
          "Latest runs",
          runs.items.length === 0
            ? empty("Never called", "Its runs appear here.")
            : table({
                label: "Latest runs",
                rows: runs.items,
                key: (row) => row.runId,
                href: (row) => to(["runs", row.runId]),
                columns: [
                  { head: "Status", class: "fit", cell: (row) => badge(row.visible) },
                  { head: "Id", cell: (row) => runLink(row.runId, { tabindex: "-1" }) },
                  { head: "Took", class: "fit num", cell: (row) => took(row.createdAt, row.finishedAt) },
                  { head: "Started", class: "fit num", cell: (row) => when(row.createdAt) },
                ],
              }),
        ),
      ),
    ),
  );
}
