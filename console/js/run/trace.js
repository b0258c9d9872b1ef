// The calls that led to an error, as text, each with a link to its line of the code.

import { h } from "../core/dom.js";
import { entrypoint } from "../core/format.js";
import { to } from "../core/router.js";
import { parsed } from "../ui/json.js";

/** What a program without a file of its own is called where it runs. */
const UNNAMED = "main.star";
/** Where the details of an error hold its calls. */
const CALLS = "call_trace";
const SHOWN = 64;

/** Whose code it is: `{name, version, href}` for an entrypoint's, nothing for other runs. */
export function codeOf(record, model) {
  if (record.kind !== "invocation") return null;
  const id = model.events[0]?.planRef?.planId;
  return {
    name: entrypoint(record.entrypoint_id).name,
    version: record.entrypoint_version,
    href: (line) => (id ? to(["entrypoints", id], { line }) : null),
  };
}

/** The details of an error apart from its calls, and the calls, outermost first. */
export function partsOf(error) {
  const data = error.details ?? parsed(error.ErrorData);
  const details = data?.details && typeof data.details === "object" ? data.details : data;
  const frames = details !== null && typeof details === "object" && Array.isArray(details[CALLS]) ? details[CALLS] : [];
  const rest =
    details !== null && typeof details === "object" && !Array.isArray(details)
      ? Object.fromEntries(Object.entries(details).filter(([name]) => name !== CALLS))
      : details;
  const lines = error.StackTrace ?? error.stack_trace ?? [];
  return { details: rest, category: error.category ?? data?.category, frames: frames.filter((frame) => frame?.line > 0), lines };
}

/** `in pay, line 2, column 12` under the name of the code; the place of the error is the last one. */
export function traceView({ frames, lines }, code) {
  if (frames.length === 0)
    return lines.length > 0 ? h("pre.stack-trace", { "aria-label": "Calls" }, lines.slice(0, SHOWN).join("\n")) : null;
  const place = (frame) => {
    const file = frame.file && frame.file !== UNNAMED ? frame.file : (code?.name ?? frame.file ?? "");
    const text = `${file}${code?.version && file === code.name ? ` ${code.version}` : ""}, line ${frame.line}, column ${frame.column}`;
    const href = code?.href(frame.line);
    return href ? h("a.link", { href, title: "Show this line of the code" }, text) : text;
  };
  return h(
    "div.stack-trace.mono",
    { role: "group", "aria-label": "Calls" },
    frames.slice(-SHOWN).map((frame) => h("div", place(frame), `, in ${frame.function ?? "the program"}`)),
  );
}
