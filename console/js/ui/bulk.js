// One action on many invocations: those that were chosen, or all that the filter finds.

import { post, REST } from "../core/api.js";
import { h } from "../core/dom.js";
import { plural } from "../core/format.js";
import { may } from "../core/session.js";
import { ask } from "./dialog.js";
import { button } from "./parts.js";
import { toast } from "./toast.js";

/** A filter is limited in length, so many ids are many requests. */
const IDS_AT_ONCE = 60;
const MAX_ITEMS = 1000;

/** Does an action on these, a part at a time; `tell` hears how many are done. */
export async function controlAll(action, ids, tell = () => {}) {
  const outcome = { done: 0, refused: 0, reason: "" };
  for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
    const part = ids.slice(at, at + IDS_AT_ONCE);
    const named = `invocation_id in (${part.map((id) => `'${id}'`).join(",")})`;
    // Dead letters are taken back only by a filter that asks for them.
    const filter = action === "retry" ? `${named} and status in ('failed','dead_lettered')` : named;
    add(outcome, await post(`${REST}/invocations:bulk`, { action, filter, max_items: part.length }));
    tell(outcome.done + outcome.refused);
  }
  return outcome;
}

function add(outcome, answer) {
  for (const item of answer.items) {
    if (item.error) {
      outcome.refused += 1;
      outcome.reason ||= item.error.message;
    } else {
      outcome.done += 1;
    }
  }
}

export function tellOutcome(verb, { done, refused, reason }) {
  if (refused === 0) toast(`${verb}: ${plural(done, "invocation")}`);
  else toast(`${verb}: ${done} done, ${refused} refused (${reason})`, done === 0 ? "bad" : "good");
}

const ACTIONS = [
  { action: "retry", verb: "Retry", glyph: "retry", needs: "runs:retry" },
  { action: "resume", verb: "Resume", glyph: "play", needs: "runs:control" },
  { action: "suspend", verb: "Suspend", glyph: "pause", needs: "runs:control" },
  { action: "cancel", verb: "Cancel", glyph: "stop", needs: "runs:cancel", danger: true },
];

export function bulkBar({ ids, filter, done }) {
  return h(
    "div.bulk",
    { role: "group", "aria-label": "What to do with the chosen ones" },
    h("strong", `${plural(ids.length, "invocation")} chosen`),
    ACTIONS.filter(({ needs }) => may(needs)).map(({ action, verb, glyph, danger }) =>
      button(
        verb,
        () =>
          ask(`${verb} ${plural(ids.length, "invocation")}?`, {
            text: "Those whose status does not allow it are left as they are.",
            ...(action === "cancel" ? { verb: "Cancel runs", keep: "Keep running" } : { verb }),
            danger,
            act: async () => {
              tellOutcome(verb, await controlAll(action, ids));
              done();
            },
          }),
        { kind: `small ${danger ? "danger" : ""}`, glyph },
      ),
    ),
    h("span.push", { style: { "margin-left": "auto" } }),
    filter ? button("All that match the filter…", () => everything(filter, done), { kind: "small" }) : null,
  );
}

function everything(filter, done) {
  const chosen = h(
    "select",
    { id: "bulk-action" },
    ACTIONS.filter(({ needs }) => may(needs)).map(({ action, verb }) => h("option", { value: action }, verb)),
  );
  const field = { name: "action", read: () => chosen.value, element: h("label.field", h("span.label", "Action"), chosen) };
  ask("All that match the filter", {
    text: [h("code", filter), ` — the newest ${MAX_ITEMS.toLocaleString("en")} at most; again for the rest.`],
    verb: "Do it",
    danger: true,
    fields: [field],
    act: async ({ action }) => {
      const outcome = { done: 0, refused: 0, reason: "" };
      add(outcome, await post(`${REST}/invocations:bulk`, { action, filter, max_items: MAX_ITEMS }));
      tellOutcome(action, outcome);
      done();
    },
  });
}
