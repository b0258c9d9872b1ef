// What makes two failures the same failure: kind, entrypoint, and the message without the ids and numbers in it.

/** All of it, as text. */
export function fingerprint(record) {
  const message = (record.error?.message ?? "no message")
    .replace(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/gi, "‹id›")
    .replace(/\b(inv|ep|run)_[A-Za-z0-9]+/g, "‹id›")
    .replace(/\b0x[0-9a-f]+\b|\b\d+(\.\d+)?\b/gi, "‹n›");
  return `${record.error?.error_type_id ?? ""}|${record.entrypoint_id}|${message}`;
}

/** The same, short enough for an address, and without what tenants wrote. FNV-1a, twice. */
export function failureKey(record) {
  const text = fingerprint(record);
  return [0x811c9dc5, 0x01000193].map((seed) => hash(text, seed)).join("");
}

function hash(text, seed) {
  let value = seed;
  for (let at = 0; at < text.length; at++) {
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  }
  return (value >>> 0).toString(16).padStart(8, "0");
}
