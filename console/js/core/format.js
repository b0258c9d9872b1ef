// Numbers, times and names as people read them.

import { zone } from "./prefs.js";

const NUMBER = new Intl.NumberFormat("en");

export const number = (value) => NUMBER.format(value);

/** 1,234 stays; 12,345 is 12.3k. */
export function compact(value) {
  if (value < 10_000) return NUMBER.format(value);
  for (const [size, unit] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (value >= size) return `${(value / size).toFixed(value / size < 100 ? 1 : 0).replace(/\.0$/, "")}${unit}`;
  }
  return String(value);
}

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];

/** Two units at most, rounded to the nearest of the smaller one: what is a second short of two days is two days. */
function coarse(ms) {
  for (const [size, unit, part, below] of [
    [DAY, "d", HOUR, "h"],
    [HOUR, "h", MINUTE, "m"],
    [MINUTE, "m", SECOND, "s"],
  ]) {
    const parts = Math.round(ms / part);
    const per = size / part;
    if (parts < per) continue;
    const rest = parts % per;
    return rest ? `${Math.floor(parts / per)} ${unit} ${rest} ${below}` : `${parts / per} ${unit}`;
  }
  return `${Math.round(ms / SECOND)} s`;
}

/** 340 ms, 1.24 s, 3 m 12 s, 2 h 5 m, 4 d 3 h */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms < 1) return "0 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  return coarse(ms);
}

/** One unit, for axes and ages. */
export function short(ms) {
  const span = Math.abs(ms);
  if (span < 1000) return `${Math.round(span)} ms`;
  if (span < 60_000) return `${trim(span / 1000)} s`;
  if (span < 3_600_000) return `${trim(span / 60_000)} m`;
  if (span < 86_400_000) return `${trim(span / 3_600_000)} h`;
  return `${trim(span / 86_400_000)} d`;
}

const trim = (value) => (value < 10 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value)));

/** 12 s ago, in 1 m 29 s, in 1 d 23 h: from ten of a unit on, and for minutes that have passed, without the smaller one. */
export function relative(at, now = Date.now()) {
  const span = now - at;
  const ms = Math.abs(span);
  if (ms < 1500) return "just now";
  const unit = [DAY, HOUR, MINUTE].find((size) => ms >= 9.95 * size) ?? (span > 0 && ms >= MINUTE && ms < HOUR ? MINUTE : SECOND);
  const text = coarse(Math.round(ms / unit) * unit);
  return span >= 0 ? `${text} ago` : `in ${text}`;
}

const pad = (value, length = 2) => String(value).padStart(length, "0");

/** The clock's fields in the zone that was chosen: a date whose UTC fields are that zone's. */
function told(at) {
  const d = new Date(at);
  return zone() === "utc" ? d : new Date(d.getTime() - d.getTimezoneOffset() * MINUTE);
}

/** `UTC`, or how far the zone is from it at that time: +09:00. */
export function zoneOf(at = Date.now()) {
  const ahead = zone() === "utc" ? 0 : -new Date(at).getTimezoneOffset();
  if (ahead === 0) return "UTC";
  const minutes = Math.abs(ahead);
  return `${ahead > 0 ? "+" : "−"}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}

/** 2026-01-31 12:00:00.123 +09:00 */
export function absolute(at) {
  const d = told(at);
  const date = `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())}`;
  return `${date} ${clock(at)}.${pad(d.getUTCMilliseconds(), 3)} ${zoneOf(at)}`;
}

/** 12:00:00; the zone stands beside it, or at the head of its column. */
export function clock(at) {
  const d = told(at);
  return `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`;
}

export function bytes(value) {
  if (value < 1024) return `${value} B`;
  for (const [size, unit] of [
    [1024 ** 3, "GB"],
    [1024 ** 2, "MB"],
    [1024, "kB"],
  ]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${value} B`;
}

/** The part of an entrypoint's address that its owner chose: `vendor.app.tax` and `v1`. */
export function entrypoint(address) {
  const segments = String(address).split("~").filter(Boolean);
  const own = segments.at(-1) ?? address;
  const found = own.match(/^(.*)\.(v\d+(?:\.\d+)?)$/);
  return {
    name: found ? found[1] : own,
    version: found ? found[2] : "",
    isWorkflow: segments.some((part) => part.includes(".workflow.")),
  };
}

/** The end of an id, as it is said in labels. */
export const idEnd = (id) => String(id).slice(-8);

/** The random end of an id, which is what people compare. */
export function shortId(id) {
  const text = String(id);
  return text.length <= 18 ? text : `${text.slice(0, text.indexOf("_") + 1)}…${text.slice(-8)}`;
}

/** `gts.x.core.serverless.err.v1~x.core.serverless.err.timeout.v1~` is `timeout`. */
export function errorName(id) {
  if (!id) return "error";
  const last = String(id).split("~").filter(Boolean).at(-1) ?? id;
  const parts = last.split(".");
  return /^v\d+$/.test(parts.at(-1)) ? (parts.at(-2) ?? last) : last;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}
