// One entrypoint: a form to run it, its other versions, its limits, its code, and its latest invocations.

import { get, post, REST } from "../core/api.js";
import { fill, h } from "../core/dom.js";
import { duration, entrypoint } from "../core/format.js";
import { go, query, render, to } from "../core/router.js";
import { may } from "../core/session.js";
import { ask } from "../ui/dialog.js";
import { schemaForm } from "../ui/form.js";
import { jsonView } from "../ui/json.js";
import { button, card, copyButton, empty, entrypointName, facts, failure, head, runLink, snippet } from "../ui/parts.js";
import { badge, life } from "../ui/status.js";
import { table } from "../ui/table.js";
import { tookOf, when } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { curlOf } from "../run/actions.js";

/** Which step of its life may follow. */
const NEXT = {
  draft: ["activate"],
  active: ["deprecate", "disable"],
  deprecated: ["disable", "archive"],
  disabled: ["enable", "archive"],
  archived: [],
};

export async function page({ place, params: { id }, signal }) {
  const found = await get(`${REST}/entrypoints/${encodeURIComponent(id)}`, {}, { signal });
  const { name, isWorkflow } = entrypoint(found.entrypoint_id);
  const prefix = found.entrypoint_id.slice(0, found.entrypoint_id.lastIndexOf(name) + name.length);
  const [versions, latest, counts] = await Promise.all([
    get(`${REST}/entrypoints`, { limit: 200 }, { signal }).then((all) =>
      all.items.filter((item) => item.entrypoint_id.startsWith(`${prefix}.v`)),
    ),
    get(`${REST}/invocations`, { entrypoint_id: found.entrypoint_id, limit: 8 }, { signal }),
    get(`${REST}/invocations:counts`, { entrypoint_id: found.entrypoint_id }, { signal }),
  ]);
  const callable = ["active", "deprecated"].includes(found.status);
  const steps = may("definitions:deploy") ? (NEXT[found.status] ?? []) : [];
  fill(
    place,
    head(
      h(
        "span.title-row",
        entrypointName(found.entrypoint_id),
        life(found.status),
        h("span.tag", isWorkflow ? "workflow" : "function"),
      ),
      {
        crumbs: [["Entrypoints", to(["entrypoints"])]],
        sub: [
          found.title !== name ? h("span", found.title) : null,
          found.description ? h("span", found.description) : null,
          h("span.mono.small", found.id),
          copyButton(found.entrypoint_id, "address"),
        ],
        actions: steps.map((action) =>
          button(
            capital(action),
            () =>
              ask(`${capital(action)} this entrypoint?`, {
                text:
                  action === "archive"
                    ? "It is kept as history and cannot be called again."
                    : "Runs in flight keep the version they started with.",
                verb: capital(action),
                danger: ["disable", "archive"].includes(action),
                act: async () => {
                  await post(`${REST}/entrypoints/${encodeURIComponent(id)}:status`, { action });
                  toast(`${action}: done`);
                  render();
                },
              }),
            { kind: action === "activate" ? "primary" : "", id: `life-${action}` },
          ),
        ),
      },
    ),
    h(
      "div.grid",
      h("div.half.stack", runCard(found, callable), codeCard(found)),
      h("div.half.stack", invocationsCard(found, latest.items, counts.items), versionsCard(found, versions), limitsCard(found)),
    ),
  );
  document.querySelector(".code .asked")?.scrollIntoView({ block: "center" });
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);

function runCard(found, callable) {
  if (!may("runs:trigger")) return null;
  if (!callable)
    return card(
      "Run it",
      h(
        "p.card-note",
        found.status === "draft"
          ? "A draft cannot be called. Activate it first; after that its definition never changes."
          : `It is ${found.status} and cannot be called.`,
      ),
    );
  const form = schemaForm(found.schema?.params);
  const modes = found.traits.invocation;
  const mode = h(
    "select",
    { id: "run-mode", "aria-label": "Mode" },
    modes.supported.map((name) => h("option", { value: name, selected: name === modes.default }, name)),
  );
  const key = h("input", {
    type: "text",
    id: "run-key",
    placeholder: "Idempotency key (optional)",
    "aria-label": "Idempotency key",
    autocomplete: "off",
  });
  const place = h("div");
  const request = () => ({ entrypoint_id: found.entrypoint_id, mode: mode.value, params: form.read() });
  const send = async (dry) => {
    fill(place);
    try {
      const headers = key.value.trim() ? { "idempotency-key": key.value.trim() } : {};
      const { record, cached } = await post(`${REST}/invocations`, { ...request(), dry_run: dry }, { headers });
      if (dry) return fill(place, h("p.card-note", "It could start: the params fit and nothing stands in the way."));
      toast(cached ? "Answered from the cache" : "Started");
      go(to(["invocations", record.id]));
    } catch (problem) {
      fill(place, failure(problem));
    }
  };
  const showCurl = () => {
    try {
      fill(place, snippet(curlOf("POST", `${REST}/invocations`, request())));
    } catch (problem) {
      fill(place, failure(problem));
    }
  };
  const empty = !found.schema?.params?.properties;
  return card(
    "Run it",
    h(
      "form.card-body",
      { id: "run-form", onsubmit: (event) => (event.preventDefault(), send(false)) },
      form.element,
      empty ? h("p.muted.small", "It has no schema for its params, so anything goes.") : null,
      h("div.filters", mode, key),
      place,
      h(
        "div.filters",
        button("Run", null, { type: "submit", kind: "primary", glyph: "play", id: "run" }),
        button("Check only", () => send(true)),
        button("As curl", showCurl, { glyph: "copy" }),
      ),
    ),
  );
}

function invocationsCard(found, items, counts) {
  const all = counts.reduce((sum, item) => sum + item.count, 0);
  const actions = h(
    "a.link.small",
    { href: to(["invocations"], { entrypoint: found.entrypoint_id }) },
    `all ${all.toLocaleString("en")}`,
  );
  if (items.length === 0) return card("Latest invocations", empty("Never called", "Run it with the form, or over HTTP."));
  return card(
    "Latest invocations",
    table({
      label: "Latest invocations",
      rows: items,
      key: (row) => row.id,
      href: (row) => to(["invocations", row.id]),
      columns: [
        { head: "Status", class: "fit", cell: (row) => badge(row.status) },
        { head: "Id", cell: (row) => runLink(row.id, { tabindex: "-1" }) },
        { head: "Took", class: "fit num", cell: (row) => tookOf(row.timestamps) },
        { head: "Started", class: "fit num", cell: (row) => when(row.timestamps.created_at) },
      ],
    }),
    { actions },
  );
}

function versionsCard(found, versions) {
  return card(
    "Versions",
    h(
      "div.rows",
      versions.map((item) =>
        h(
          "a",
          { href: to(["entrypoints", item.id]), "aria-current": item.id === found.id ? "true" : null },
          h("strong", entrypoint(item.entrypoint_id).version),
          h("span.muted.num", item.version),
          life(item.status),
          item.id === found.id ? h("span.muted", "this one") : null,
          h("span.push.muted", when(item.created_at)),
        ),
      ),
    ),
  );
}

function limitsCard(found) {
  const { limits, retry, rate_limit: rate, caching, is_idempotent: idempotent, workflow } = found.traits;
  return card(
    "Limits and behaviour",
    h(
      "div.card-body",
      facts([
        ["Timeout", limits.timeout_seconds ? duration(limits.timeout_seconds * 1000) : null],
        ["At the same time", limits.max_concurrent ?? "no limit of its own"],
        ["Memory", limits.memory_mb ? `${limits.memory_mb} MB` : null],
        ["CPU", limits.cpu ?? null],
        ["Tries", retry?.max_attempts ?? null],
        ["Rate limit", rate ? h("code", JSON.stringify(rate)) : "none"],
        ["Cached", caching?.max_age_seconds ? `${caching.max_age_seconds} s` : "no"],
        ["Idempotent", idempotent ? "yes" : "no"],
        ["Checkpoints", workflow?.checkpointing?.strategy ?? null],
        [
          "Undone by",
          Object.entries(workflow?.compensation ?? {})
            .filter(([, by]) => by)
            .map(([when, by]) =>
              h(
                "div",
                `${when.replace("_", " ")}: `,
                entrypointName(typeof by === "string" ? by : (by.entrypoint_id ?? JSON.stringify(by))),
              ),
            ),
        ],
        ["Owner", `${found.owner.owner_type} ${found.owner.id}`],
        ["Tags", found.tags?.length > 0 ? found.tags.join(", ") : null],
      ]),
    ),
  );
}

/** Longer code is shown without numbers: each line is an element. */
const LINES_NUMBERED = 5000;

/** The address may name a line, as the calls that led to an error do. */
function codeView(source, asked) {
  const lines = source.replace(/\n$/, "").split("\n");
  const props = { tabindex: "0", role: "region", "aria-label": "Source" };
  if (lines.length > LINES_NUMBERED) return h("pre.code", props, source);
  return h(
    "pre.code.numbered",
    props,
    lines.map((line, at) =>
      h(
        "span.line",
        { id: `L${at + 1}`, class: at + 1 === asked ? "asked" : "", "aria-current": at + 1 === asked ? "location" : null },
        `${line}\n`,
      ),
    ),
  );
}

function codeCard(found) {
  const source = found.implementation?.code?.source;
  if (source)
    return card("Code", codeView(source, Number.parseInt(query().line, 10)), { actions: copyButton(source, "code") });
  return card("Definition", jsonView(found.implementation ?? {}));
}
