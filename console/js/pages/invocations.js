// Invocations of entrypoints: filtered by the address, counted, paged, and acted on together.

import { get, REST } from "../core/api.js";
import { fill, h, quiet } from "../core/dom.js";
import { failureKey } from "../core/fingerprint.js";
import { compact, entrypoint, idEnd, number, plural } from "../core/format.js";
import { inStatus } from "../core/lists.js";
import { every } from "../core/poll.js";
import { go, query, to } from "../core/router.js";
import { may } from "../core/session.js";
import { bulkBar } from "../ui/bulk.js";
import { icon } from "../ui/icons.js";
import { liveTag } from "../ui/live.js";
import { button, card, empty, failure, head, runLink } from "../ui/parts.js";
import { entrypointName } from "../ui/parts.js";
import { badge, meaning, STATUSES, word } from "../ui/status.js";
import { table } from "../ui/table.js";
import { tookOf, when } from "../ui/time.js";
import { errorRemark } from "../run/undone.js";
import { waitText } from "../run/waits.js";

const REFRESH_MS = 3000;
/** Offered even when there are none. */
const MAIN = new Set(["queued", "running", "suspended", "succeeded", "failed"]);
const SPANS = { "15m": 15 * 60e3, "1h": 3600e3, "24h": 86_400e3, "7d": 7 * 86_400e3 };

/** What the server is asked, from the address. */
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

function filterOf(asked) {
  const statuses = (asked.status ?? "").split(",").filter((status) => STATUSES.includes(status));
  const terms = [];
  // One status has an index; several are a condition.
  if (statuses.length > 1) terms.push(`status in (${statuses.map((status) => `'${status}'`).join(",")})`);
  if (SPANS[asked.since]) terms.push(`created_at gt ${new Date(Date.now() - SPANS[asked.since]).toISOString()}`);
  if (asked.q) {
    terms.push(`(invocation_id eq ${quoted(asked.q)} or correlation_id eq ${quoted(asked.q)})`);
  }
  // The list has parameters for these, a bulk action has only the filter.
  const whole = [...terms];
  if (statuses.length === 1) whole.push(`status eq '${statuses[0]}'`);
  if (asked.mode) whole.push(`mode eq ${quoted(asked.mode)}`);
  if (asked.entrypoint) whole.push(`entrypoint_id eq ${quoted(asked.entrypoint)}`);
  return { terms, statuses, whole: whole.join(" and ") };
}

export async function page({ place, signal }) {
  const asked = query();
  const { terms, statuses, whole } = filterOf(asked);
  const chosen = new Set();
  const live = !asked.cursor && !asked.failure;
  let shown = null;
  let before = "";

  const entrypoints = get(`${REST}/entrypoints`, { limit: 200 }, { signal }).catch(() => ({ items: [] }));
  const filters = h("div.filters");
  const list = h("div");
  const state = liveTag(signal);
  fill(
    place,
    head("Invocations", {
      sub: "Runs of entrypoints, newest first",
      actions: [state, button("Run an entrypoint", () => go(to(["entrypoints"])), { glyph: "play", kind: "primary" })],
    }),
    filters,
    list,
  );

  const load = () =>
    asked.failure ? ofOneFailure(asked, statuses, signal) : ofServer();
  const ofServer = () =>
    get(
      `${REST}/invocations`,
      {
        limit: asked.limit ?? 50,
        cursor: asked.cursor,
        mode: asked.mode,
        status: statuses.length === 1 ? statuses[0] : "",
        entrypoint_id: asked.entrypoint,
        $filter: terms.join(" and "),
      },
      { signal },
    );
  const counts = () => get(`${REST}/invocations:counts`, { entrypoint_id: asked.entrypoint }, { signal });

  const change = (changes) => go(to(["invocations"], { ...asked, cursor: "", ...changes }));
  const drawFilters = (byStatus, known) =>
    fill(
      filters,
      h(
        "div.chips",
        { role: "group", "aria-label": "Status" },
        STATUSES.filter((status) => MAIN.has(status) || statuses.includes(status) || byStatus[status] > 0).map((status) => {
          const on = statuses.includes(status);
          const next = on ? statuses.filter((other) => other !== status) : [...statuses, status];
          const count = byStatus[status] ?? 0;
          return h(
            "button.chip",
            {
              type: "button",
              id: `chip-${status}`,
              "aria-pressed": String(on),
              title: meaning(status),
              class: count === 0 && !on ? "none" : "",
              onclick: () => change({ status: next.join(",") }),
            },
            h("span.status.bare", { class: `st-${status}` }, icon(status)),
            word(status),
            h("span.n", compact(count)),
          );
        }),
      ),
      select(
        "entrypoint",
        "Entrypoint",
        asked.entrypoint ?? "",
        [
          ["", "Every entrypoint"],
          ...known.map((item) => [
            item.entrypoint_id,
            `${entrypoint(item.entrypoint_id).name} ${entrypoint(item.entrypoint_id).version}`,
          ]),
        ],
        (value) => change({ entrypoint: value }),
      ),
      select(
        "since",
        "Started",
        asked.since ?? "",
        [
          ["", "At any time"],
          ["15m", "Last 15 minutes"],
          ["1h", "Last hour"],
          ["24h", "Last 24 hours"],
          ["7d", "Last 7 days"],
        ],
        (value) => change({ since: value }),
      ),
      h(
        "form",
        { onsubmit: (event) => (event.preventDefault(), change({ q: event.target.elements.q.value.trim() })) },
        h("input", {
          type: "search",
          name: "q",
          id: "filter-q",
          value: asked.q ?? "",
          placeholder: "Id or correlation id",
          "aria-label": "Id or correlation id",
        }),
      ),
      asked.failure
        ? h(
            "button.chip",
            {
              type: "button",
              id: "filter-failure",
              "aria-pressed": "true",
              title: "Only this failure. Press to see the others, too.",
              onclick: () => change({ failure: "", read: "" }),
            },
            icon("failures"),
            "One failure",
            icon("close"),
          )
        : null,
      Object.keys(asked).some((name) => name !== "limit")
        ? button("Clear", () => go(to(["invocations"])), { glyph: "close" })
        : null,
    );

  const draw = () => {
    const { items, page_info: info } = shown;
    const bar =
      chosen.size > 0
        ? bulkBar({
            ids: [...chosen],
            // No filter of the server's says which failure it was.
            filter: asked.failure ? "" : whole,
            done: () => (chosen.clear(), (before = ""), refresh()),
          })
        : null;
    fill(
      list,
      card(null, [
        bar,
        shown.left_out > 0
          ? h("p.card-note.top", `Only the newest ${number(shown.left_out)} failures of this entrypoint were looked through.`)
          : null,
        items.length === 0
          ? nothing(asked)
          : table({
              label: "Invocations",
              rows: items,
              key: (row) => row.id,
              name: (row) => `${entrypoint(row.entrypoint_id).name}, ${idEnd(row.id)}`,
              href: (row) => to(["invocations", row.id]),
              chosen: may("runs:control") ? chosen : null,
              onChoose: draw,
              columns: [
                { head: "Status", class: "fit end", cell: (row) => badge(row.status) },
                { head: "Entrypoint", class: "clip w-name lead", cell: (row) => entrypointName(row.entrypoint_id) },
                { head: "Id", class: "fit", cell: (row) => runLink(row.id, { tabindex: "-1" }) },
                { head: "", hint: "Error, or what it waits for", class: "clip w-more soft remark", cell: remark },
                { head: "Mode", class: "fit muted wide-only", cell: (row) => row.mode },
                {
                  head: "Took",
                  class: "fit num",
                  cell: (row) => tookOf(row.timestamps),
                },
                { head: "Started", class: "fit num", cell: (row) => when(row.timestamps.created_at) },
              ],
            }),
        h(
          "div.pager",
          h("span", plural(items.length, "row")),
          h("span.push"),
          button("Newer", () => change({ cursor: info.prev_cursor }), {
            glyph: "left",
            disabled: !info.prev_cursor,
            id: "newer",
          }),
          button("Older", () => change({ cursor: info.next_cursor }), { glyph: "right", disabled: !info.has_more, id: "older" }),
        ),
      ]),
    );
    state.say(live ? "live" : "page", live);
  };

  const refresh = async () => {
    [shown] = await Promise.all([
      load(),
      Promise.all([counts(), entrypoints]).then(([all, known]) => {
        const byStatus = Object.fromEntries(all.items.map((item) => [item.status, item.count]));
        if (!signal.aborted && !filters.contains(document.activeElement)) drawFilters(byStatus, known.items);
      }),
    ]);
    const text = JSON.stringify(shown);
    if (text === before) return;
    before = text;
    await quiet();
    if (!signal.aborted) draw();
  };
  drawFilters({}, []);
  await refresh();
  if (!live) return;
  await every(REFRESH_MS, signal, () =>
    refresh().catch((problem) => signal.aborted || problem.status === 0 || fill(list, failure(problem, refresh))),
  );
}

/** Failures that are read to find those of one group: as many as the page of failures groups. */
const READ = 1000;
const READ_MAX = 20_000;

/** The server keeps no errors in its index, so what failed is read and compared here. Pages are parts of what was read. */
async function ofOneFailure(asked, statuses, signal) {
  const limit = Math.min(Math.max(Number.parseInt(asked.read, 10) || READ, 1), READ_MAX);
  const found = await inStatus(statuses.length > 0 ? statuses : ["failed", "dead_lettered"], {
    limit,
    entrypoint: asked.entrypoint,
    signal,
  });
  const items = found.items.filter((record) => failureKey(record) === asked.failure);
  const size = Number.parseInt(asked.limit, 10) || 50;
  const at = Math.max(0, Number.parseInt(asked.cursor, 10) || 0);
  return {
    items: items.slice(at, at + size),
    page_info: {
      next_cursor: String(at + size),
      prev_cursor: at > 0 ? String(Math.max(0, at - size)) : null,
      has_more: at + size < items.length,
    },
    left_out: found.more ? limit : 0,
  };
}

function select(name, label, value, options, onchange) {
  return h(
    "select",
    { id: `filter-${name}`, "aria-label": label, onchange: (event) => onchange(event.target.value) },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
  );
}

/** The one thing worth knowing about a row. */
function remark(row) {
  if (row.error) return errorRemark(row);
  if (row.blocked_by?.length > 0) return h("span", { title: waitText(row) }, waitText(row));
  return null;
}

function nothing(asked) {
  if (Object.keys(asked).length > 0)
    return empty("Nothing matches", "No invocation fits these filters. Take one away, or look at another time.");
  return empty(
    "No invocations yet",
    "Register an entrypoint and call it; the run appears here at once.",
    'printf \'def main(ctx, input):\\n    return {"hello": input.name}\\n\' > hello.star\nservo entrypoints register hello.star --name demo.app.hello --activate\nservo invocations start demo.app.hello --params \'{"name": "world"}\'',
  );
}
