// Numbers, times and names as people read them.

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

/** 340 ms, 1.24 s, 3 m 12 s, 2 h 5 m, 4 d 3 h */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms < 1) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const [d, hr, m, sec] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  if (d > 0) return hr ? `${d} d ${hr} h` : `${d} d`;
  if (hr > 0) return m ? `${hr} h ${m} m` : `${hr} h`;
  return sec ? `${m} m ${sec} s` : `${m} m`;
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

/** 12 s ago, in 3 m */
export function relative(at, now = Date.now()) {
  const span = now - at;
  if (Math.abs(span) < 1500) return "just now";
  const whole = (n) => Math.floor(Math.abs(n));
  const text =
    Math.abs(span) < 60_000
      ? `${whole(span / 1000)} s`
      : Math.abs(span) < 3_600_000
        ? `${whole(span / 60_000)} m`
        : Math.abs(span) < 86_400_000
          ? `${whole(span / 3_600_000)} h`
          : `${whole(span / 86_400_000)} d`;
  return span >= 0 ? `${text} ago` : `in ${text}`;
}

const pad = (value, length = 2) => String(value).padStart(length, "0");

/** 2026-01-31 12:00:00.123 in the reader's zone */
export function absolute(at) {
  const d = new Date(at);
  const date = `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
  return `${date} ${clock(at)}.${pad(d.getMilliseconds(), 3)}`;
}

export function clock(at) {
  const d = new Date(at);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
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
