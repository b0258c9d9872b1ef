// The server, asked over HTTP. Nothing here knows what is shown.

export const REST = "/api/serverless-runtime/v1";

const KEY = "servo.key";

/** A refusal in the words of the server, or why there was no answer. */
export class Problem extends Error {
  constructor({ status = 0, code = "", title = "", detail = "", errors = [], requestId = "" }) {
    super(detail || title || `the server answered ${status}`);
    Object.assign(this, { status, code, title, detail, errors, requestId });
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY),
  // What was seen with another key is not this one's to see.
  set: (text) => (sessionStorage.clear(), sessionStorage.setItem(KEY, text)),
  forget: () => sessionStorage.clear(),
};

/** Called when the server wants a key, or another one. */
let onKeyNeeded = () => {};
export function whenKeyNeeded(handler) {
  onKeyNeeded = handler;
}

/** Whether the server answered when it was asked last, and when it last did. */
const contact = { reachable: true, at: Date.now() };
const hearers = new Set();

/** Calls with what is known of the server, now and whenever that changes; ends with the signal. */
export function onContact(listener, signal) {
  hearers.add(listener);
  listener(contact);
  signal?.addEventListener("abort", () => hearers.delete(listener), { once: true });
}

function heard(reachable) {
  const changed = contact.reachable !== reachable;
  contact.reachable = reachable;
  if (reachable) contact.at = Date.now();
  if (changed) for (const listener of hearers) listener(contact);
}

/** What stands before the server says this when nobody is behind it. */
const isGateway = (response) =>
  [502, 503, 504].includes(response.status) && !/^application\/(problem\+)?json/.test(response.headers.get("content-type") ?? "");

function headersWith(more) {
  const headers = new Headers(more);
  const text = key.get();
  if (text) headers.set("authorization", `Bearer ${text}`);
  return headers;
}

/** `path?a=b` from an object; what is empty is left out. */
export function withQuery(path, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, value);
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** A server that takes the connection and says nothing does not answer either. What changes something may take its time. */
const PATIENCE_MS = 30_000;

async function send(method, path, { body, headers = {}, signal, accepts = () => false, patience = 0 } = {}) {
  const head = headersWith(headers);
  if (body !== undefined) head.set("content-type", "application/json");
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: head,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: patience > 0 ? AbortSignal.any([AbortSignal.timeout(patience), ...(signal ? [signal] : [])]) : signal,
      credentials: "omit",
      cache: "no-store",
    });
    heard(!isGateway(response));
  } catch (error) {
    if (signal?.aborted) throw error;
    heard(false);
    throw new Problem({ title: "The server does not answer", detail: "Is it running? The console asks again by itself." });
  }
  if (!response.ok && !accepts(response)) throw await refusal(response);
  return response;
}

async function refusal(response) {
  let told = {};
  try {
    told = await response.json();
  } catch {
    // Not one of our answers; the status has to do.
  }
  const problem = new Problem({
    status: response.status,
    code: told.code,
    title: told.title,
    detail: told.detail ?? told.message,
    errors: told.errors ?? told.issues ?? [],
    requestId: told.requestId ?? told.trace_id ?? response.headers.get("x-request-id") ?? "",
  });
  if (response.status === 401) onKeyNeeded(problem);
  return problem;
}

async function json(method, path, options) {
  const response = await send(method, path, { patience: method === "GET" ? PATIENCE_MS : 0, ...options });
  if (response.status === 204) return null;
  let text;
  try {
    text = await response.text();
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    heard(false);
    throw new Problem({ title: "The server does not answer", detail: "The answer was cut off. The console asks again by itself." });
  }
  return text ? JSON.parse(text) : null;
}

export const get = (path, query, options) => json("GET", withQuery(path, query), options);
export const post = (path, body, options) => json("POST", path, { ...options, body });

/** Whether the server is ready. A no is an answer, too, unless it is the problem of something else. */
export function readiness(options) {
  const isAnswer = (response) => response.headers.get("content-type")?.startsWith("application/json");
  return json("GET", "/readyz", { ...options, accepts: (response) => response.status === 503 && isAnswer(response) });
}

const PAUSE_MS = [500, 1000, 2000, 5000, 10000];

/**
 * Follows server-sent events until `end` comes or the signal ends it; a lost connection is made again, from where it was.
 * Not an EventSource, which could send no key.
 */
export async function follow(path, { signal, lastId = 0, onEvent, onState = () => {} }) {
  let last = lastId;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await send("GET", path, {
        signal,
        headers: { accept: "text/event-stream", "last-event-id": String(last) },
      });
      onState("live");
      failures = 0;
      for await (const event of frames(response.body)) {
        if (event.id) last = Number(event.id);
        if (event.type === "end") return onState("ended");
        onEvent(event.type, event.data, last);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) {
        return onState("ended");
      }
    }
    onState("lost");
    await pause(PAUSE_MS[Math.min(failures++, PAUSE_MS.length - 1)], signal);
  }
}

async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard(true);
    buffer += value;
    let end;
    while ((end = buffer.indexOf("\n\n")) >= 0) {
      const frame = parse(buffer.slice(0, end));
      buffer = buffer.slice(end + 2);
      if (frame) yield frame;
    }
  }
}

function parse(block) {
  const event = { id: "", type: "message", data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("id:")) event.id = line.slice(3).trim();
    else if (line.startsWith("event:")) event.type = line.slice(6).trim();
    else if (line.startsWith("data:")) event.data += line.slice(5).trimStart();
  }
  if (!event.data) return null;
  try {
    event.data = JSON.parse(event.data);
  } catch {
    return null;
  }
  return event;
}

/** An id that no other has; `crypto.randomUUID` is kept from pages that came without TLS. */
export const uniqueId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
