// Which view an address shows. Filters live in the address, so that a view can be sent to somebody.

export const ROOT = "/console";

const routes = [];
let outlet = () => {};
let current = null;
/** Set by a view that takes another query of its own address without being shown anew. */
let staying = null;

/** `route("invocations/:id", page)`: the page is called with its parameters and gives back its view. */
export function route(pattern, page, title) {
  routes.push({ parts: pattern.split("/").filter(Boolean), page, title });
}

/** A part of an address as it was meant; what is no encoding is taken as it stands. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function match(path) {
  const asked = path.slice(ROOT.length).split("/").filter(Boolean).map(decoded);
  for (const { parts, page, title } of routes) {
    if (parts.length !== asked.length) continue;
    const params = {};
    const fits = parts.every((part, at) => {
      if (!part.startsWith(":")) return part === asked[at];
      params[part.slice(1)] = asked[at];
      return true;
    });
    if (fits) return { page, params, title };
  }
  return null;
}

let started = false;

/** Shows the view of the address, and follows it from now on. Again, after somebody came with another key, it only shows. */
export function start(show) {
  outlet = show;
  if (started) return render();
  started = true;
  addEventListener("popstate", () => moved());
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(ROOT))
      return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
  render();
}

/** The address of a view, from parts that may hold anything. */
export function to(parts, query = {}) {
  const search = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined),
  );
  const path = `${ROOT}/${parts.map(encodeURIComponent).join("/")}`;
  return search.size > 0 ? `${path}?${search}` : path;
}

export function go(href, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  moved();
}

/** `changed` is called with another query of this address: by the back button, or by a link within the view. */
export function stay(changed, signal) {
  const mine = { path: location.pathname, changed };
  staying = mine;
  signal.addEventListener("abort", () => staying === mine && (staying = null), { once: true });
}

/** Puts into the address what the view shows already. Choices that are undone one by one are steps back; typing is none. */
export function note(changes, { replace = false } = {}) {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") search.delete(name);
    else search.set(name, value);
  }
  const href = search.size > 0 ? `${location.pathname}?${search}` : location.pathname;
  if (href === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
}

function moved() {
  if (staying !== null && staying.path === location.pathname) staying.changed(query());
  else render();
}

export const query = () => Object.fromEntries(new URLSearchParams(location.search));

/** Ends the view that is shown, with everything it follows. */
export function stop() {
  current?.abort();
}

/** Shows the view of the address again, as if it had been opened now. */
export function render() {
  current?.abort();
  current = new AbortController();
  outlet(match(location.pathname), current.signal);
}
