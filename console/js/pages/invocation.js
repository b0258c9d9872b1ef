// One run: what it did when, what went in and came out, and what can be done about it. Live while it runs.

import { follow, pause } from "../core/api.js";
import { fill, h, quiet } from "../core/dom.js";
import { entrypoint, number } from "../core/format.js";
import { note, query, stay, to } from "../core/router.js";
import { asCommands, buttons } from "../run/actions.js";
import { RunModel } from "../run/fold.js";
import { loadEvents, loadRecord } from "../run/load.js";
import { needsOf } from "../run/needs.js";
import { LogTab, operationDetail, tabs } from "../run/panels.js";
import { summaryOf } from "../run/summary.js";
import { codeOf } from "../run/trace.js";
import { Timeline } from "../run/waterfall.js";
import { liveTag } from "../ui/live.js";
import { button, card, copyButton, empty, entrypointName, head, hidden } from "../ui/parts.js";
import { badge, OPEN } from "../ui/status.js";
import { took, when } from "../ui/time.js";

const TICK_MS = 250;
const POLL_MS = 2000;
const TYPED_MS = 400;
const SHOWS = new Set(["all", "failed", "active"]);

export async function page({ place, params: { id }, signal }) {
  const model = new RunModel();
  let read;
  try {
    read = await loadEvents(id, model, signal);
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
  new View(place, { id, record, signal, model, ...read }).begin();
}

class View {
  constructor(place, { id, record, signal, model, after, left }) {
    Object.assign(this, { place, id, record, signal, model, after, left, state: "" });
    this.head = h("div");
    this.live = liveTag(signal);
    this.summary = h("div");
    this.needs = h("div.stack");
    this.about = h("div");
    this.detail = h("div");
    this.actions = h("span.now");
    this.panels = h("div");
    this.log = new LogTab(id, signal);
    this.timeline = new Timeline({
      signal,
      onChoose: (step, how) => this.choose(step, how),
      onFilter: (changes) => this.filter(changes),
    });
    this.fall = card("Timeline", [this.about, this.timeline.element, this.detail], { actions: this.actions });
    fill(place, this.head, h("div.stack", this.needs, this.summary, this.fall, this.panels));
  }

  begin() {
    this.read(query());
    // The step that the address names, or what failed.
    this.timeline.reveal(this.step ?? this.timeline.nextFailure());
    stay((asked) => {
      const [step, tab] = [this.step, this.tab];
      this.read(asked);
      if (this.step && this.step !== step) this.timeline.reveal(this.step);
      if (this.tab && this.tab !== tab) this.panels.scrollIntoView({ block: "nearest" });
    }, this.signal);
    this.tick();
    this.watch();
  }

  /** What the address asks for: it can be sent to somebody, and the back button undoes a choice. */
  read({ step = null, tab = null, round = null, show = "all", find = "" }) {
    Object.assign(this, { step, tab, round, show: SHOWS.has(show) ? show : "all", find });
    this.draw();
  }

  /** Links within the page keep what was chosen before. */
  note(changes, options) {
    note(changes, options);
    this.drawSummary();
  }

  choose(step, { jump = false } = {}) {
    this.step = this.step === step && !jump ? null : step;
    this.note({ step: this.step });
    this.drawFall();
    if (jump) this.timeline.reveal(step, { focus: true });
  }

  filter({ show = this.show, find = this.find }) {
    const isTyped = show === this.show;
    Object.assign(this, { show, find });
    this.drawFall();
    clearTimeout(this.noting);
    const put = () => this.signal.aborted || this.note({ show: show === "all" ? "" : show, find }, { replace: isTyped });
    // Browsers count how often an address changes.
    if (isTyped) this.noting = setTimeout(put, TYPED_MS);
    else put();
  }

  /** Events as they come; the record is read again when some came. */
  async watch() {
    if (this.watching) return;
    this.watching = true;
    let due = false;
    await follow(`/v1/runs/${encodeURIComponent(this.id)}/events`, {
      signal: this.signal,
      lastId: this.after,
      onState: (state) => ((this.state = state), this.sayLive()),
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
      await this.catchUp();
    }
    this.watching = false;
  }

  async catchUp() {
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
      if (!document.hidden && OPEN.has(this.record.status)) this.timeline.grow(Date.now());
    }
  }

  draw() {
    this.drawHead();
    this.sayLive();
    this.drawSummary();
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
            this.spent(),
            record.mode ? h("span", record.mode) : null,
            this.model.imported
              ? h(
                  "span.tag",
                  { id: "imported", title: "its events say what a file said" },
                  `imported by ${this.model.imported.by} `,
                  when(this.model.imported.at),
                )
              : null,
            this.live,
          ],
          actions: [
            ...buttons(record, this.model, () => this.refresh()),
            button("As curl", () => asCommands(record), { glyph: "copy", id: "as-curl" }),
          ],
        },
      ),
    );
  }

  /** How long it takes or took. A retried run has two answers, so both have a name. */
  spent() {
    const { record, model } = this;
    const open = OPEN.has(record.status);
    const times = record.timestamps;
    const end = open ? null : (times.finished_at ?? model.to ?? times.created_at);
    const word = open ? "for " : "took ";
    const rounds = model.rounds;
    if (rounds.length < 2) return h("span", word, took(times.started_at ?? times.created_at, end));
    return h(
      "span",
      { id: "took" },
      `round ${number(rounds.length)} ${word}`,
      took(rounds.at(-1).from, end),
      ", the whole run ",
      took(model.from, end),
    );
  }

  sayLive() {
    const open = OPEN.has(this.record.status);
    if (!open) this.live.say("");
    else if (this.state === "live") this.live.say("live", true);
    else this.live.say(this.state === "lost" ? "connection lost, trying again" : "watching");
  }

  drawSummary() {
    const link = (changes) => {
      const asked = { ...query(), ...changes };
      return to([this.record.kind === "run" ? "runs" : "invocations", this.id], asked);
    };
    fill(
      this.summary,
      summaryOf(this.record, this.model, { stepLink: (step) => link({ step }), tabLink: (tab) => link({ tab }) }),
    );
  }

  drawNeeds() {
    fill(
      this.needs,
      needsOf(this.record, this.model, () => this.refresh()),
    );
  }

  drawFall() {
    const { model, left } = this;
    if (model.from === null)
      return fill(this.about, empty("Nothing has happened yet", "The first events appear here as they are recorded."));
    const rounds = model.rounds;
    const current = this.roundShown();
    const operation = this.step === "undo" ? model.undo : model.operations.get(this.step);
    this.timeline.update(model, {
      now: Date.now(),
      chosen: operation ? this.step : null,
      round: current === "all" ? null : rounds[current],
      show: this.show,
      find: this.find,
    });
    fill(
      this.about,
      left > 0
        ? h(
            "p.card-note",
            `${number(left)} events in the middle of this long log are not drawn. All of them: servo runs events ${this.id}`,
          )
        : null,
    );
    fill(
      this.detail,
      operation
        ? operationDetail(operation, this.record, { code: codeOf(this.record, model), close: () => this.choose(this.step) })
        : null,
    );
    fill(
      this.actions,
      rounds.length > 1 ? this.roundChips(rounds.length, current) : null,
      h("strong", number(model.operations.size)),
      ` ${model.operations.size === 1 ? "operation" : "operations"}, `,
      h("strong", number(model.events.length)),
      " events",
    );
  }

  /** The last round, unless another is asked for, or a step is that was in none but an earlier one. */
  roundShown() {
    const { rounds } = this.model;
    if (rounds.length < 2 || this.round === "all") return "all";
    const asked = Number.parseInt(this.round, 10);
    if (asked >= 1 && asked <= rounds.length) return asked - 1;
    const last = rounds.at(-1);
    const step = this.model.operations.get(this.step);
    const isEarlier = step?.spans.length > 0 && step.spans.every((span) => span.to !== null && span.to < last.from);
    return isEarlier ? "all" : rounds.length - 1;
  }

  /** A retry is a round of its own; the last one is shown unless another is asked for. */
  roundChips(count, current) {
    const chip = (value, label) =>
      h(
        "button.chip",
        {
          type: "button",
          id: `round-${value}`,
          "aria-pressed": String(value === current),
          onclick: () => {
            this.round = value === "all" ? "all" : String(value + 1);
            this.note({ round: this.round });
            this.drawFall();
          },
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
        onChoose: (name) => {
          this.tab = name;
          this.note({ tab: name });
          this.drawPanels();
        },
      }),
      this.record.payloads_hidden ? hidden() : null,
    );
  }
}
