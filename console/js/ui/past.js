// Rates of the time before this tab looked, from the latest runs themselves: exact as far back as those reach.

const BUCKET_MS = 15_000;
const WINDOW_MS = 15 * 60_000;

/** Points of started and ended per second, up to the moment when sampling began. */
export function pastRates(records, until) {
  const started = records.map((record) => Date.parse(record.timestamps.created_at));
  const ended = records
    .filter((record) => record.timestamps.finished_at)
    .map((record) => Date.parse(record.timestamps.finished_at));
  if (started.length === 0) return { started: [], ended: [] };
  const oldest = Math.min(...started);
  const first = Math.max(oldest, until - WINDOW_MS);
  const buckets = Math.floor((until - first) / BUCKET_MS);
  const from = until - buckets * BUCKET_MS;
  const points = (times) => {
    const counts = new Array(Math.max(0, buckets)).fill(0);
    for (const at of times) {
      const bucket = Math.floor((at - from) / BUCKET_MS);
      if (bucket >= 0 && bucket < counts.length) counts[bucket] += 1;
    }
    return counts.map((count, at) => ({ at: from + (at + 0.5) * BUCKET_MS, value: (count * 1000) / BUCKET_MS }));
  };
  return { started: points(started), ended: points(ended) };
}
