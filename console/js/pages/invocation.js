// One run: what it did when, what went in and came out, and what can be done about it. Live while it runs.

import { follow, pause } from "../core/api.js";
import { fill, h, quiet } from "../core/dom.js";
import { entrypoint, number } from "../core/format.js";
import { to } from "../core/router.js";
import { asCommands, buttons } from "../run/actions.js";
import { RunModel } from "../run/fold.js";
import { loadEvents, loadRecord } from "../run/load.js";
import { needsOf } from "../run/needs.js";
import { LogTab, operationDetail, tabs } from "../run/panels.js";
import { waterfall } from "../run/waterfall.js";
import { button, card, copyButton, empty, entrypointName, head, hidden } from "../ui/parts.js";
import { badge, OPEN } from "../ui/status.js";
import { took, when } from "../ui/time.js";

const TICK_MS = 250;
const POLL_MS = 2000;

export async function page({ place, params: { id }, signal }) {
  const model = new RunModel();
  let after;
  let all;
  try {
    ({ after, all } = await loadEvents(id, model, signal));
  } catch (problem) {
    if (problem.status !== 404 && problem.status !== 400) throw problem;
    fill(
      place,
      head("No such run"),
      empty(
        "There is no run with this id",
        "It may have left by retention, or belong to another tenant.",
        "servo runs list",
      ),
    );
    return;
  }
  const record = await loadRecord(id, model, signal);
  new View(place, { id, record, signal, model, after, cut: all > after ? all : 0 }).begin();
}

class View {
  constructor(place, { id, record, signal, model, after, cut }) {
    Object.assign(this, { place, id, record, signal, model, after, cut, chosen: null, tab: null, state: "" });
    this.head = h("div");
    this.needs = h("div.stack");
    this.fall = h("div");
    this.panels = h("div");
    this.log = new LogTab(id, signal);
    fill(place, this.head, h("div.stack", this.needs, this.fall, this.panels));
  }

  begin() {
    this.draw();
    this.tick();
    this.watch();
  }

  /** Events as they come; the record is read again when some came. */
  async watch() {
    if (this.watching) return;
    this.watching = true;
    // A log that is too long to be drawn is not followed either; how the run stands is.
    if (this.cut) return this.poll();
    let due = false;
    await follow(`/v1/runs/${encodeURIComponent(this.id)}/events`, {
      signal: this.signal,
      lastId: this.after,
      onState: (state) => ((this.state = state), this.drawHead()),
      onEvent: (_type, event, last) => {
        this.model.add(event);
        this.after = last;
        if (due) return;
        due = true;
        setTimeout(() => ((due = false), this.reload()), 80);
      },
    });
    await this.reload();
    // Being undone is no part of the run's own stream.
    await this.poll();
  }

  async poll() {
    while (!this.signal.aborted && OPEN.has(this.record.status)) {
      await pause(POLL_MS, this.signal);
      await (this.cut ? this.reload() : this.catchUp());
    }
    this.watching = false;
  }

  async catchUp() {
    if (this.cut) return this.reload();
    await loadEvents(this.id, this.model, this.signal)
      .then(({ after }) => (this.after = Math.max(this.after, after)))
      .catch(() => {});
    await this.reload();
  }

  async reload() {
    if (this.signal.aborted) return;
    try {
      this.record = await loadRecord(this.id, this.model, this.signal);
    } catch {
      return;
    }
    await quiet();
    if (!this.signal.aborted) this.draw();
  }

  /** After an action: what it did may have opened the run again. */
  async refresh() {
    await this.catchUp();
    if (OPEN.has(this.record.status)) this.watch();
  }

  /** What goes on grows. */
  async tick() {
    while (!this.signal.aborted) {
      await pause(TICK_MS, this.signal);
      if (!document.hidden && OPEN.has(this.record.status)) this.falls?.grow(Date.now());
    }
  }

  draw() {
    this.drawHead();
    this.drawNeeds();
    this.drawFall();
    this.drawPanels();
  }

  drawHead() {
    const { record } = this;
    const title =
      record.kind === "invocation"
        ? entrypointName(record.entrypoint_id)
        : h("span", record.name, " ", h("span.ep-version", record.version ?? ""));
    document.title = `${record.kind === "invocation" ? entrypoint(record.entrypoint_id).name : record.name} · Servo`;
    const times = record.timestamps;
    const live = this.state === "live" && OPEN.has(record.status);
    fill(
      this.head,
      head(
        h(
          "span.title-row",
          title,
          badge(record.status),
          record.snapshot?.substatus
            ? h("span.tag", { title: "steps in flight are still finishing" }, record.snapshot.substatus)
            : null,
        ),
        {
          crumbs: [record.kind === "invocation" ? ["Invocations", to(["invocations"])] : ["All runs", to(["runs"])]],
          sub: [
            h("span.mono", record.id),
            copyButton(record.id, "id"),
            h("span", "started ", when(times.created_at)),
            h(
              "span",
              OPEN.has(record.status) ? "for " : "took ",
              took(
                times.started_at ?? times.created_at,
                OPEN.has(record.status) ? null : (times.finished_at ?? this.model.to ?? times.created_at),
              ),
            ),
            record.mode ? h("span", record.mode) : null,
            OPEN.has(record.status)
              ? h(
                  "span.live",
                  { class: live ? "on" : this.state === "lost" ? "lost" : "" },
                  live ? "live" : this.state === "lost" ? "connection lost, trying again" : "watching",
                )
              : null,
          ],
          actions: [
            ...buttons(record, this.model, () => this.refresh()),
            button("As curl", () => asCommands(record), { glyph: "copy", id: "as-curl" }),
          ],
        },
      ),
    );
  }

  drawNeeds() {
    fill(
      this.needs,
      needsOf(this.record, this.model, () => this.refresh()),
    );
  }

  drawFall() {
    const { model } = this;
    if (model.from === null)
      return fill(this.fall, empty("Nothing has happened yet", "The first events appear here as they are recorded."));
    const onChoose = (id) => {
      this.chosen = this.chosen === id ? null : id;
      this.drawFall();
    };
    const operation = this.chosen === "undo" ? model.undo : model.operations.get(this.chosen);
    const rounds = model.rounds;
    const shown = this.round === "all" ? null : (rounds[this.round ?? rounds.length - 1] ?? null);
    this.falls = waterfall(model, { now: Date.now(), chosen: this.chosen, onChoose, round: rounds.length > 1 ? shown : null });
    fill(
      this.fall,
      card(
        "Timeline",
        [
          this.cut
            ? h(
                "p.card-note",
                `The first ${number(model.events.length)} of ${number(this.cut)} events are drawn. All of them: servo runs events ${this.id}`,
              )
            : null,
          this.falls,
          operation ? operationDetail(operation, this.record, () => onChoose(this.chosen)) : null,
        ],
        {
          actions: h(
            "span.now",
            rounds.length > 1 ? this.roundChips(rounds.length) : null,
            h("strong", number(model.operations.size)),
            ` ${model.operations.size === 1 ? "operation" : "operations"}, `,
            h("strong", number(model.events.length)),
            " events",
          ),
        },
      ),
    );
  }

  /** A retry is a round of its own; the last one is shown unless another is asked for. */
  roundChips(count) {
    const current = this.round ?? count - 1;
    const chip = (value, label) =>
      h(
        "button.chip",
        {
          type: "button",
          id: `round-${value}`,
          "aria-pressed": String(value === current),
          onclick: () => ((this.round = value), this.drawFall()),
        },
        label,
      );
    return h(
      "span.chips",
      { role: "group", "aria-label": "Round" },
      Array.from({ length: Math.min(count, 8) }, (_, at) => count - Math.min(count, 8) + at).map((at) =>
        chip(at, `round ${at + 1}`),
      ),
      chip("all", "all"),
    );
  }

  drawPanels() {
    fill(
      this.panels,
      tabs(this.record, this.model, {
        chosen: this.tab,
        log: this.log,
        onChoose: (name) => ((this.tab = name), this.drawPanels()),
      }),
      this.record.payloads_hidden ? hidden() : null,
    );
  }
}
