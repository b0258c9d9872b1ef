// Conditions that an operator should see, and whether the server takes work.

import { get, readiness } from "../core/api.js";
import { fill, h, quiet } from "../core/dom.js";
import { to } from "../core/router.js";
import { bytes, number } from "../core/format.js";
import { every } from "../core/poll.js";
import { may } from "../core/session.js";
import { icon } from "../ui/icons.js";
import { card, empty, facts, head, runLink } from "../ui/parts.js";
import { table } from "../ui/table.js";
import { when } from "../ui/time.js";

const REFRESH_MS = 5000;

export async function page({ place, signal }) {
  let before = "";
  const refresh = async () => {
    const [ready, alerts, runtime, store] = await Promise.all([
      readiness({ signal }),
      get("/v1/alerts", { limit: 200 }, { signal }),
      get("/runtime/snapshot", {}, { signal }),
      may("platform") ? get("/v1/store/info", {}, { signal }).catch(() => null) : null,
    ]);
    const text = JSON.stringify([ready, alerts, runtime.authority?.stale, runtime.backlog, store]);
    if (text === before || signal.aborted) return;
    before = text;
    await quiet();
    fill(
      place,
      head("Alerts and readiness"),
      h(
        "div.stack",
        card(
          "Readiness",
          h(
            "div.card-body",
            h(
              "p",
              { style: { "margin-bottom": "14px" } },
              ready.ready
                ? h("span.status.st-succeeded", icon("succeeded"), "Ready: the server takes work")
                : h("span.status.st-failed", icon("failed"), `Not ready: ${(ready.reasons ?? []).join("; ")}`),
            ),
            facts([
              ["Authority", runtime.authority?.owner ? h("span.mono.small", runtime.authority.owner) : "none"],
              [
                "Lease",
                runtime.authority?.stale
                  ? h("span.bad-text", runtime.authority.stale_reason ?? "stale")
                  : runtime.authority?.leased_until
                    ? ["ends ", when(runtime.authority.leased_until), ", renewed before"]
                    : "none",
              ],
              ["Queued", number(runtime.backlog?.pending ?? 0)],
              ["In flight", number(runtime.backlog?.notified ?? 0)],
              ["Failed dispatches", number(runtime.backlog?.failed ?? 0)],
              [
                "Store",
                store ? `${store.backend ?? store.kind ?? "store"}, ${bytes(store.sizeBytes ?? store.size_bytes ?? 0)}` : null,
              ],
            ]),
          ),
        ),
        card(
          "Alerts",
          alerts.items.length === 0
            ? empty("No alerts", "Conditions such as a bus that does not answer, or a run that cannot be read, appear here.")
            : table({
                label: "Alerts",
                rows: alerts.items,
                name: (row) => row.code,
                key: (row) => `${row.code}-${row.subject ?? row.runId ?? ""}`,
                columns: [
                  { head: "", hint: "Severity", class: "fit end", cell: (row) => h("span.tag", { class: `sev-${row.severity}` }, row.severity ?? "") },
                  { head: "Alert", class: "fit lead", cell: (row) => h("strong", row.code) },
                  { head: "About", class: "clip remark", cell: (row) => row.message ?? row.detail ?? row.subject ?? "" },
                  { head: "Run", class: "fit", cell: (row) => (row.runId ? runLink(row.runId) : null) },
                  { head: "Times", class: "fit num", cell: (row) => number(row.count ?? 1) },
                  { head: "Last", class: "fit num", cell: (row) => when(row.lastAt ?? row.lastSeenAt ?? row.raisedAt ?? row.at) },
                ],
              }),
          { actions: h("a.link.small", { href: to(["audit"]) }, "audit log") },
        ),
      ),
    );
  };
  await refresh();
  await every(REFRESH_MS, signal, () => refresh().catch(() => {}));
}
