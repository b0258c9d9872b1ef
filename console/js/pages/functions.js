// Functions that speak Lambda's protocol, and where their workers are.

import { get } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { to } from "../core/router.js";
import { card, empty, head } from "../ui/parts.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

export const REACH = {
  push: "called at a URL",
  pull: "workers ask for work",
  inProcess: "inside the server",
  in_process: "inside the server",
};

export async function page({ place, signal }) {
  const { items } = await get("/v1/functions", { limit: 200 }, { signal });
  fill(
    place,
    head("Functions", { sub: "Handlers that speak AWS Lambda's durable execution API, and their workers" }),
    card(
      null,
      items.length === 0
        ? empty(
            "No functions yet",
            "Start a program that was built with the SDK as a worker, or point at a handler that runs elsewhere.",
            "servo dev --function orders=./orders\nservo dev --function orders=http://127.0.0.1:9000",
          )
        : table({
            label: "Functions",
            rows: items,
            key: (row) => row.name,
            href: (row) => to(["functions", row.name]),
            columns: [
              { head: "Name", class: "lead", cell: (row) => h("strong", row.name) },
              {
                head: "Reached",
                class: "soft",
                cell: (row) => [
                  REACH[row.spec.reach.kind] ?? row.spec.reach.kind,
                  row.spec.reach.url ? h("span.mono.muted.small", ` ${row.spec.reach.url}`) : null,
                ],
              },
              { head: "Durable", class: "fit", cell: (row) => (row.spec.durable === false ? "no" : "yes") },
              { head: "At the same time", class: "fit num", cell: (row) => row.spec.maxConcurrent ?? "–" },
              { head: "Version", class: "fit num", cell: (row) => row.version },
              { head: "Published", class: "fit num", cell: (row) => when(row.createdAt) },
            ],
          }),
    ),
  );
}
