// Small drawings on a grid of 16, in the colour of the text around them.

import { s } from "../core/dom.js";

const line = (d, more = {}) => ({
  d,
  fill: "none",
  stroke: "currentColor",
  "stroke-width": 1.6,
  "stroke-linecap": "round",
  "stroke-linejoin": "round",
  ...more,
});
const solid = (d) => ({ d, fill: "currentColor" });
const DISC = "M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13z";
const mark = (d) => ({ ...line(d), stroke: "var(--on-solid)", "stroke-width": 1.8 });

const SHAPES = {
  // statuses: each has a shape of its own, for those who do not tell the colours apart
  queued: [{ ...line(DISC), "stroke-dasharray": "2.2 2.9" }],
  running: [line(DISC, { opacity: 0.3 }), line("M8 1.5a6.5 6.5 0 0 1 6.5 6.5")],
  suspended: [line(DISC), line("M6.3 5.6v4.8M9.7 5.6v4.8")],
  succeeded: [solid(DISC), mark("M5 8.3l2.1 2.1l4-4.4")],
  failed: [solid("M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z"), mark("M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4")],
  canceled: [line(DISC), line("M3.6 12.4l8.8-8.8")],
  compensating: [line("M5.2 3.2L2.6 5.8l2.6 2.6"), line("M2.8 5.8h6.4a3.8 3.8 0 0 1 0 7.6H6")],
  compensated: [solid(DISC), mark("M6.6 4.6L4.8 6.4l1.8 1.8M5 6.4h4.2a2.1 2.1 0 0 1 0 4.2H7")],
  dead_lettered: [solid("M3 14V7a5 5 0 0 1 10 0v7z"), mark("M8 5.6v5M6.2 7.6h3.6")],
  // places
  overview: [line("M2 2.5h5v6H2zM9.5 2.5H14v3.5H9.5zM9.5 8.5H14v5H9.5zM2 11h5v2.5H2z")],
  invocations: [line("M2 4h7M5 8h8M2 12h6")],
  runs: [line("M3 3v10M13 3v10M3 8h10")],
  failures: [line("M8 2.2l6.2 11H1.8z"), line("M8 6.6v3M8 11.6v.1")],
  waiting: [line("M4 2h8M4 14h8M5 2c0 4 6 4.500 6 0M5 14c0-4 6-4.500 6 0")],
  entrypoints: [line("M6 3.500L2 8l4 4.500M10 3.500L14 8l-4 4.500")],
  functions: [line("M2.500 13.500L7 2.500h1l5.500 11M4.400 9.500h6.600")],
  alerts: [line("M4 11V7a4 4 0 0 1 8 0v4l1.200 1.500H2.800zM6.700 14.300h2.600")],
  audit: [line("M3.500 1.800h9v12.400h-9zM6 5.200h4M6 8h4M6 10.800h2.500")],
  // actions
  context: [line("M5.5 2.500H3v11h2.500M10.500 2.500H13v11h-2.500")],
  menu: [line("M2 4h12M2 8h12M2 12h12")],
  search: [line("M7 2.500a4.500 4.500 0 1 1 0 9a4.500 4.500 0 0 1 0-9zM10.400 10.400L14 14")],
  copy: [line("M5.500 5.500h8v8h-8zM2.500 10.500v-8h8")],
  play: [solid("M4.500 2.800l8.500 5.200l-8.500 5.200z")],
  retry: [line("M13 8a5 5 0 1 1-1.500-3.550"), line("M13.200 1.900v3h-3")],
  stop: [solid("M4 4h8v8H4z")],
  pause: [line("M5.500 3.500v9M10.500 3.500v9")],
  replay: [line("M2.500 4.500h8a3 3 0 0 1 0 6.500H5"), line("M7 8.500L4.500 11L7 13.500")],
  send: [line("M2 8h11M9 4l4 4l-4 4")],
  check: [line("M3 8.500l3.200 3.200L13 4.800")],
  close: [line("M4 4l8 8M12 4l-8 8")],
  right: [line("M6 3.500L10.500 8L6 12.500")],
  left: [line("M10 3.500L5.500 8L10 12.500")],
  down: [line("M3.500 6L8 10.500L12.500 6")],
  help: [line(DISC), line("M6.200 6.300a1.900 1.900 0 1 1 2.700 1.800c-.6.3-.9.7-.9 1.300M8 11.400v.1")],
  lock: [line("M3.500 7.500h9v6.500h-9zM5.500 7.500V5a2.500 2.500 0 0 1 5 0v2.500")],
  sun: [
    line(
      "M8 5.200a2.800 2.800 0 1 1 0 5.600a2.800 2.800 0 0 1 0-5.600zM8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7",
    ),
  ],
  moon: [line("M13.500 9.500A6 6 0 1 1 6.500 2.500a4.800 4.800 0 0 0 7 7z")],
  system: [line("M2 3h12v8H2zM6 13.500h4M8 11v2.500")],
  external: [line("M6 3.500H3v9.500h9.500V10M9 2.500h4.500V7M13.500 2.500L7.500 8.500")],
  user: [line("M8 2.500a2.800 2.800 0 1 1 0 5.600a2.800 2.800 0 0 1 0-5.600zM2.800 14c.6-3 2.600-4 5.200-4s4.600 1 5.200 4")],
};

/** An icon is decoration: the word stands beside it, or on the button. */
export function icon(name, more = {}) {
  const shapes = SHAPES[name] ?? [line(DISC)];
  const { class: extra = "", ...rest } = more;
  return s(
    "svg.icon",
    { viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false", class: `i-${name} ${extra}`, ...rest },
    shapes.map((shape) => s("path", shape)),
  );
}
