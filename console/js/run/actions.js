// What a person can do with a run: the buttons, and the same as a command.

import { key, post, REST, uniqueId } from "../core/api.js";
import { entrypoint } from "../core/format.js";
import { go, to } from "../core/router.js";
import { may } from "../core/session.js";
import { controlAll, tellOutcome } from "../ui/bulk.js";
import { ask, jsonField, open, textField } from "../ui/dialog.js";
import { h } from "../core/dom.js";
import { button, snippet } from "../ui/parts.js";
import { toast } from "../ui/toast.js";

const place = (record) => `${REST}/invocations/${encodeURIComponent(record.id)}`;

/** “Cancel” alone would mean two things in a dialog. */
const CANCEL_ANSWERS = { verb: "Cancel run", keep: "Keep running" };

/** Which actions a status allows; the server has the last word. */
const ALLOWED = {
  cancel: ["queued", "running", "suspended"],
  suspend: ["running"],
  resume: ["suspended"],
  retry: ["failed", "dead_lettered"],
  replay: ["succeeded", "failed"],
};

export function buttons(record, model, refresh) {
  const out = [];
  if (record.kind === "run") return runButtons(record, refresh);
  const allowed = (action) => ALLOWED[action].includes(record.status);
  const workflow = entrypoint(record.entrypoint_id).isWorkflow;
  const control = async (action) => {
    if (action === "retry" && record.status === "dead_lettered") {
      tellOutcome("Retry", await controlAll("retry", [record.id]));
    } else {
      const answer = await post(`${place(record)}:control`, { action });
      if (action === "replay") {
        toast("Replayed: this is the new invocation");
        return go(to(["invocations", answer.id]));
      }
      toast(`${action}: accepted`);
    }
    refresh();
  };
  const put = (action, verb, glyph, permission, { question = null, danger = false, kind = "", answers = {} } = {}) => {
    if (!allowed(action) || !may(permission)) return;
    const act = question
      ? () => ask(`${verb} this invocation?`, { text: question, verb, danger, ...answers, act: () => control(action) })
      : () => control(action).catch((problem) => toast(problem.message, "bad"));
    out.push(button(verb, act, { glyph, kind: kind || (danger ? "danger" : ""), id: `do-${action}` }));
  };
  put("retry", "Retry", "retry", "runs:retry", { kind: "primary" });
  // A timer or a message resumes by itself; only what an operator stopped needs one.
  if (record.status === "suspended" && record.blocked_by?.some((by) => by.cause === "operator"))
    put("resume", "Resume", "play", "runs:control", { kind: "primary" });
  if (workflow)
    put("suspend", "Suspend", "pause", "runs:control", {
      question: "It stops at the next operation and holds nothing until it is resumed.",
    });
  if (workflow && may("runs:trigger") && ["queued", "running", "suspended"].includes(record.status))
    out.push(button("Signal", () => signal(record, "", refresh), { glyph: "send", id: "do-signal" }));
  put("replay", "Replay", "replay", "runs:trigger", {
    question: "A new invocation starts with the same input. This one stays as it is.",
  });
  put("cancel", "Cancel", "stop", "runs:cancel", {
    question: "The code is told to stop, and the invocation ends. What is done stays done, unless a compensation undoes it.",
    danger: true,
    answers: CANCEL_ANSWERS,
  });
  return out;
}

function runButtons(record, refresh) {
  const send = async (type, more = {}) => {
    await post(`/v1/runs/${encodeURIComponent(record.id)}/signals`, {
      signalId: `console-${uniqueId()}`,
      type,
      ...more,
    });
    toast(`${type.toLowerCase().replace("_", " ")}: accepted`);
    refresh();
  };
  const needs = { RETRY_RUN: "runs:retry", CANCEL: "runs:cancel" };
  const put = (type, verb, glyph, on, kind = "") =>
    on && may(needs[type] ?? "runs:control")
      ? button(verb, () => ask(`${verb} this run?`, {
              verb,
              danger: kind === "danger",
              ...(type === "CANCEL" ? CANCEL_ANSWERS : {}),
              act: () => send(type),
            }), {
          glyph,
          kind,
          id: `do-${type.toLowerCase()}`,
        })
      : null;
  const raw = record.snapshot.status;
  return [
    put("APPROVE", "Approve", "check", record.blocked_by.some((by) => by.cause === "approval"), "primary"),
    put("RETRY_RUN", "Retry", "retry", raw === "FAILED", "primary"),
    put("RESUME", "Resume", "play", raw === "PAUSED", "primary"),
    put("PAUSE", "Pause", "pause", raw === "RUNNING"),
    put("CANCEL", "Cancel", "stop", ["PENDING", "APPROVED", "RUNNING", "PAUSED"].includes(raw), "danger"),
  ].filter(Boolean);
}

/** Sends a message to a workflow. */
export function signal(record, name, refresh) {
  ask("Send a signal", {
    text: "A workflow that waits for a message of this name continues with it. One that comes early is kept.",
    verb: "Send",
    fields: [
      textField("name", "Name", { value: name }),
      jsonField("payload", "Payload", { value: "{}", hint: "JSON; what wait_signal returns" }),
    ],
    act: async ({ name: chosen, payload }) => {
      await post(`${place(record)}:signal`, { signal_id: `console-${uniqueId()}`, name: chosen, payload });
      toast(`Signal ${chosen} sent`);
      refresh();
    },
  });
}

const CALLBACKS = "/2025-12-01/durable-execution-callbacks";

/** Answers a callback, as whoever was asked would do. */
export function answerCallback(operation, approve, refresh) {
  const fields = approve
    ? [jsonField("result", "Result", { value: '{"approved": true}', hint: "JSON; what the code gets" })]
    : [textField("reason", "Reason", { placeholder: "why not" })];
  ask(approve ? `Approve ${operation.name}?` : `Reject ${operation.name}?`, {
    text: approve ? "The run continues with this result." : "The code gets an error with this reason.",
    verb: approve ? "Approve" : "Reject",
    danger: !approve,
    fields,
    act: async ({ result, reason }) => {
      const path = `${CALLBACKS}/${encodeURIComponent(operation.callback)}`;
      if (approve) await post(`${path}/succeed`, result ?? {});
      else await post(`${path}/fail`, { ErrorType: "Rejected", ErrorMessage: reason || "rejected in the console" });
      toast(approve ? "Approved" : "Rejected");
      refresh();
    },
  });
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curlOf(method, path, body) {
  const header = key.get() ? ` \\\n  -H "Authorization: Bearer $SERVO_KEY"` : "";
  const data = body === undefined ? "" : ` \\\n  -H 'content-type: application/json' \\\n  -d ${quote(JSON.stringify(body))}`;
  return `curl -s${method === "GET" || body !== undefined ? "" : ` -X ${method}`} ${location.origin}${path}${header}${data}`;
}

/** The same requests for a terminal. The key is never part of them. */
export function asCommands(record) {
  const rows =
    record.kind === "run"
      ? [
          ["Read it", curlOf("GET", `/v1/runs/${record.id}`)],
          ["Follow its events", `${curlOf("GET", `/v1/runs/${record.id}/events`)} -N -H 'Accept: text/event-stream'`],
          ["With the command", `servo runs get ${record.id}`],
        ]
      : [
          record.payloads_hidden
            ? null
            : [
                "Start one like it",
                curlOf("POST", `${REST}/invocations`, {
                  entrypoint_id: record.entrypoint_id,
                  mode: record.mode,
                  params: record.params,
                }),
              ],
          ["Read it", curlOf("GET", place(record))],
          ["Retry it", curlOf("POST", `${place(record)}:control`, { action: "retry" })],
          ["Follow it", `${curlOf("GET", `${place(record)}/timeline`)} -N -H 'Accept: text/event-stream'`],
          ["With the command", `servo invocations watch ${record.id}`],
        ].filter(Boolean);
  open(
    "As commands",
    () =>
      h(
        "div",
        rows.map(([title, command]) => h("div", h("h3", title), snippet(command), h("br"))),
      ),
    { wide: true },
  );
}
