// How things are: what runs, what failed, what waits, and whether it keeps up.

import { get, REST } from "../core/api.js";
import { fill, h, quiet } from "../core/dom.js";
import { fingerprint } from "../core/fingerprint.js";
import { inStatus } from "../core/lists.js";
import { compact, duration, entrypoint, errorName, number, plural, short } from "../core/format.js";
import { every } from "../core/poll.js";
import { to } from "../core/router.js";
import { errorRemark } from "../run/undone.js";
import { waitText } from "../run/waits.js";
import { lines, scatter } from "../ui/charts.js";
import { icon } from "../ui/icons.js";
import { card, empty, entrypointName, head, snippet } from "../ui/parts.js";
import { history, onSample } from "../ui/sampler.js";
import { dot, known, meaning, STATUSES, word } from "../ui/status.js";
import { when } from "../ui/time.js";
import { groupAddress } from "./failures.js";

const REFRESH_MS = 10_000;
const TONES = {
  succeeded: "c-good",
  failed: "c-bad",
  dead_lettered: "c-bad",
  running: "c-busy",
  suspended: "c-wait",
  compensating: "c-undo",
  compensated: "c-undo",
  queued: "c-quiet",
  canceled: "c-quiet",
};
const ENDED = ["succeeded", "failed", "compensated", "canceled", "dead_lettered"];

export async function page({ place, signal }) {
  const tiles = h("div.tiles");
  const throughput = h("div.chart-body");
  const rate = h("span.now");
  const queue = h("div.chart-body");
  const age = h("span.now");
  const recent = h("div");
  fill(
    place,
    head("Overview"),
    h(
      "div.stack",
      tiles,
      h(
        "div.grid",
        card(h("span", "Throughput, per second"), throughput, { class: "half", actions: rate }),
        card(h("span", "Age of the queue"), queue, { class: "half", actions: age }),
      ),
      recent,
    ),
  );
  const drawn = (sample) => quiet().then(() => signal.aborted || drawSamples(sample, { tiles, throughput, rate, queue, age }));
  onSample(drawn, signal);
  let before = "";
  const refresh = async () => {
    const [latest, failed, waiting, runs] = await Promise.all([
      get(`${REST}/invocations`, { limit: 150 }, { signal }),
      inStatus(["failed", "dead_lettered"], { limit: 50, signal }),
      inStatus(["queued", "suspended"], { limit: 6, oldest: true, signal }),
      get("/v1/runs", { limit: 8 }, { signal }),
    ]);
    const text = JSON.stringify([latest, failed, waiting, runs]);
    if (text === before || signal.aborted) return;
    before = text;
    await quiet();
    fill(
      recent,
      latest.items.length === 0
        ? welcome(runs.items)
        : h(
            "div.grid",
            card("Latest invocations", h("div.chart-body", dots(latest.items, widthOf(place))), {
              actions: h(
                "span.key-row",
                h("span", h("i.c-good"), "succeeded"),
                h("span", h("i.c-bad"), "failed"),
                h("span", h("i.c-busy"), "running"),
                h("span", h("i.c-wait"), "waiting"),
              ),
            }),
            card("Most frequent failures", failures(failed.items), {
              class: "half",
              actions: h("a.link.small", { href: to(["failures"]) }, "all"),
            }),
            card("Waiting longest", waits(waiting.items), {
              class: "half",
              actions: h("a.link.small", { href: to(["waiting"]) }, "all"),
            }),
          ),
    );
  };
  await refresh();
  await every(REFRESH_MS, signal, () => refresh().catch(() => {}));
}

/** A drawing is made for the place it gets, so that its letters have one size everywhere. */
const widthOf = (place) => Math.max(280, (place.clientWidth || 540) - 28);

function drawSamples(sample, { tiles, throughput, rate, queue, age }) {
  fill(
    tiles,
    STATUSES.filter((status) => !status.startsWith("compensat") || sample.counts[status] > 0).map((status) => {
      const count = sample.counts[status] ?? 0;
      return h(
        "a.tile",
        {
          href: to(["invocations"], { status }),
          title: `${number(count)} ${word(status)}: ${meaning(status)}`,
          class: count === 0 ? "zero" : "",
        },
        h("span.what", h("span.status.bare", { class: `st-${status}` }, icon(status)), word(status)),
        h("span.value", compact(count)),
      );
    }),
  );
  const seen = history();
  const ended = (one) => ENDED.reduce((sum, status) => sum + (one.counts[status] ?? 0), 0);
  const all = (one) => Object.values(one.counts).reduce((sum, count) => sum + count, 0);
  const perSecond = (of) =>
    seen
      .slice(1)
      .map((one, at) => ({
        at: one.at,
        value: Math.max(0, (of(one) - of(seen[at])) / Math.max(0.5, (one.at - seen[at].at) / 1000)),
      }));
  const [started, finished] = [perSecond(all), perSecond(ended)];
  const perSecondText = (value) =>
    value >= 10 ? compact(Math.round(value)) : value.toFixed(value > 0 && value < 1 ? 2 : 1).replace(/\.0$/, "");
  fill(
    rate,
    h(
      "span.key-row",
      h("span", h("i.c-busy"), "started ", h("strong", perSecondText(started.at(-1)?.value ?? 0)), "/s"),
      h("span", h("i.c-good"), "ended ", h("strong", perSecondText(finished.at(-1)?.value ?? 0)), "/s"),
    ),
  );
  fill(
    throughput,
    lines({
      width: widthOf(throughput),
      label: "Started and ended per second",
      series: [
        { tone: "c-busy", points: started },
        { tone: "c-good", points: finished, area: true },
      ],
      format: perSecondText,
    }),
  );
  fill(age, "oldest queued ", h("strong", sample.queueAge > 0 ? short(sample.queueAge) : "none"));
  fill(
    queue,
    lines({
      width: widthOf(queue),
      label: "Age of the oldest queued run",
      series: [{ tone: "c-wait", points: seen.map((one) => ({ at: one.at, value: one.queueAge / 1000 })), area: true }],
      format: (value) => `${perSecondText(value)} s`,
      floor: 1,
    }),
  );
}

function dots(items, width) {
  return scatter({
    width,
    label: "Duration of the latest invocations",
    href: (one) => to(["invocations", one.id]),
    dots: items.map((item) => {
      const at = Date.parse(item.timestamps.created_at);
      const end = item.timestamps.finished_at ? Date.parse(item.timestamps.finished_at) : Date.now();
      const took = Math.max(1, end - at);
      return {
        id: item.id,
        at,
        took,
        tone: TONES[item.status],
        title: `${entrypoint(item.entrypoint_id).name}, ${word(item.status)}, ${duration(took)}`,
      };
    }),
  });
}

function failures(items) {
  if (items.length === 0) return h("p.card-note", "Nothing has failed.");
  const groups = new Map();
  for (const item of items) groups.set(fingerprint(item), [...(groups.get(fingerprint(item)) ?? []), item]);
  return h(
    "div.rows",
    [...groups.values()]
      .sort((a, b) => b.length - a.length)
      .slice(0, 6)
      .map((group) =>
        h(
          "a",
          { href: group.length === 1 ? to(["invocations", group[0].id]) : groupAddress(group[0]) },
          dot(group[0].status),
          h("span.tag.count-tag", { title: plural(group.length, "run") }, number(group.length)),
          h(
            "span.clip",
            h("strong", errorName(group[0].error?.error_type_id)),
            " ",
            errorRemark(group[0]),
          ),
          h("span.push.muted", when(group[0].timestamps.finished_at ?? group[0].timestamps.created_at)),
        ),
      ),
  );
}

function waits(items) {
  if (items.length === 0) return h("p.card-note", "Nothing waits.");
  return h(
    "div.rows",
    items.map((item) =>
      h(
        "a",
        { href: to(["invocations", item.id]) },
        dot(item.status),
        entrypointName(item.entrypoint_id),
        h("span.clip.soft", waitText(item) || "its turn"),
        h("span.push.muted", when(item.timestamps.created_at)),
      ),
    ),
  );
}

/** The first minutes with the product. */
function welcome(runs) {
  return h(
    "div.grid",
    card(
      "Begin here",
      h(
        "div.card-body",
        h(
          "p.soft",
          "Write a workflow, register it while the server runs, and start it. Its steps, waits and signals survive crashes, restarts and deploys.",
        ),
        snippet(
          'cat > approve.star <<\'STAR\'\ndef main(ctx, input):\n    held = ctx.step("reserve", lambda order: "reservation of " + order, args = [input.order_id])\n    answer = ctx.wait_signal("approval")      # for days, if it takes them\n    return {"held": held, "by": answer.by}\nSTAR\nservo entrypoints register approve.star --name demo.app.approve --workflow --activate\nservo invocations start demo.app.approve --workflow --params \'{"order_id": "o-7"}\'',
        ),
        h(
          "p.muted",
          { style: { "margin-top": "10px" } },
          "It appears here at once; open it and send the signal ",
          h("code", "approval"),
          " from its page.",
        ),
      ),
      { class: "two-thirds" },
    ),
    card(
      "Latest runs",
      runs.length === 0
        ? empty("No runs yet", "Runs of plans and functions appear here.")
        : h(
            "div.rows",
            runs.map((run) =>
              h(
                "a",
                { href: to(["runs", run.runId]) },
                dot(known(run.visible)),
                h("span.clip", run.planId),
                h("span.push.muted", when(run.createdAt)),
              ),
            ),
          ),
      { class: "third", actions: h("a.link.small", { href: to(["runs"]) }, "all") },
    ),
  );
}
