// Charts drawn as SVG, small and exact. They take numbers and know no API.

import { s, h } from "../core/dom.js";
import { clock, compact, short, zoneOf } from "../core/format.js";

const LEFT = 40;
const BOTTOM = 18;

/** A round number at or above the largest value. */
function ceiling(value) {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((top) => top >= value);
}

function frame({ width, height, from, to, top, label, format, describe }) {
  const plot = { left: LEFT, right: width - 4, top: 8, bottom: height - BOTTOM };
  const x = (at) => plot.left + ((at - from) / Math.max(1, to - from)) * (plot.right - plot.left);
  const y = (value) => plot.bottom - (value / top) * (plot.bottom - plot.top);
  const parts = [0, 0.5, 1].map((part) => [
    s("line.grid-line", { x1: plot.left, x2: plot.right, y1: y(top * part), y2: y(top * part) }),
    s("text", { x: plot.left - 7, y: y(top * part) + 4, "text-anchor": "end" }, format(top * part)),
  ]);
  const ticks = (width < 420 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((part) =>
    s(
      "text",
      { x: x(from + (to - from) * part), y: height - 3, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" },
      clock(from + (to - from) * part).slice(0, to - from > 600_000 ? 5 : 8),
    ),
  );
  // Below the numbers of the other axis: by whose clock the ticks are.
  ticks.push(s("text", { x: plot.left - 7, y: height - 3, "text-anchor": "end" }, zoneOf(to)));
  return {
    x,
    y,
    plot,
    svg: (...inside) =>
      s(
        "svg.chart",
        { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${describe}` },
        parts,
        ticks,
        inside,
      ),
  };
}

/** Lines over time: `series` are `{tone, points: [{at, value}], area}`. */
export function lines({ label, series, width, height = 150, format = compact, floor = 0 }) {
  const all = series.flatMap((one) => one.points);
  if (series.every((one) => one.points.length < 2)) return h("p.muted.chart-wait", "Watching. The line begins after a few seconds.");
  const from = Math.min(...all.map((point) => point.at));
  const to = Math.max(...all.map((point) => point.at));
  const top = ceiling(Math.max(floor, ...all.map((point) => point.value)));
  const last = series.map((one) => format(one.points.at(-1)?.value ?? 0)).join(", ");
  const { x, y, plot, svg } = frame({ width, height, from, to, top, label, format, describe: `now ${last}` });
  return svg(
    series.map(({ tone, points, area }) => {
      const path = points
        .map((point, at) => `${at === 0 ? "M" : "L"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`)
        .join("");
      return [
        area && points.length > 1
          ? s("path.area", {
              class: tone,
              d: `${path}L${x(points.at(-1).at).toFixed(1)} ${plot.bottom}L${x(points[0].at).toFixed(1)} ${plot.bottom}Z`,
            })
          : null,
        s("path.line", { class: tone, d: path, style: { fill: "none" } }),
      ];
    }),
  );
}

/** A dot per run: when it started, how long it took. Durations are on a scale that shows milliseconds and hours. */
export function scatter({ label, dots, width, height = 200, href }) {
  if (dots.length === 0) return h("p.card-note", "Nothing has ended yet.");
  const from = Math.min(...dots.map((dot) => dot.at));
  const to = Math.max(...dots.map((dot) => dot.at), from + 1000);
  const low = Math.floor(Math.log10(Math.max(1, Math.min(...dots.map((dot) => dot.took)))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(10, ...dots.map((dot) => dot.took)))));
  const format = (part) => short(10 ** (low + part * (high - low)));
  const { x, y, svg } = frame({ width, height, from, to, top: 1, label, format, describe: `${dots.length} runs` });
  const level = (took) => (Math.log10(Math.max(1, took)) - low) / (high - low);
  return svg(
    dots.map((dot) =>
      s(
        "a",
        { href: href(dot), "aria-label": dot.title, tabindex: "-1" },
        s(
          "circle.dot",
          { class: dot.tone, cx: x(dot.at).toFixed(1), cy: y(level(dot.took)).toFixed(1), r: 3.6 },
          s("title", {}, dot.title),
        ),
      ),
    ),
  );
}
