// The frame around every page: navigation, who is here, and whether the server is well.

import { fill, h } from "../core/dom.js";
import { compact, zoneOf } from "../core/format.js";
import { setTheme, setZone, theme, THEMES, zone } from "../core/prefs.js";
import { decoded, render, ROOT, to } from "../core/router.js";
import { leave, may, who } from "../core/session.js";
import { key } from "../core/api.js";
import { icon } from "./icons.js";
import { help } from "./keys.js";
import { openPalette } from "./palette.js";
import { iconButton } from "./parts.js";
import { onSample } from "./sampler.js";

const PLACES = [
  { id: "", word: "Overview", glyph: "overview", key: "o" },
  { id: "invocations", word: "Invocations", glyph: "invocations", key: "i" },
  { id: "failures", word: "Failures", glyph: "failures", key: "f" },
  { id: "waiting", word: "Waiting", glyph: "waiting", key: "w" },
  { id: "entrypoints", word: "Entrypoints", glyph: "entrypoints", key: "e", group: "Code" },
  { id: "functions", word: "Functions", glyph: "functions", key: "u" },
  { id: "runs", word: "All runs", glyph: "runs", key: "r", group: "System" },
  { id: "alerts", word: "Alerts", glyph: "alerts", key: "a" },
  { id: "audit", word: "Audit", glyph: "audit", key: "l", permission: "audit:read" },
];

/** Where the caller can go; the palette and the keys use the same list. */
export const places = () => PLACES.filter((place) => !place.permission || may(place.permission));

export const logo = () => h("img", { src: document.querySelector("link[rel=icon]").href, alt: "" });

export function buildShell(main) {
  const links = new Map();
  const items = places().map((place) => {
    const count = h("span.count");
    const link = h(
      "a",
      { href: to([place.id].filter(Boolean)) || ROOT, data: { place: place.id }, title: place.word },
      icon(place.glyph),
      h("span.word", place.word),
      count,
    );
    links.set(place.id, count);
    return [place.group ? h("div.group", place.group) : null, link];
  });
  const banner = h("div", { role: "status" });
  onSample((sample) => {
    const n = (...names) => names.reduce((sum, name) => sum + (sample.counts[name] ?? 0), 0);
    setCount(links.get("failures"), n("failed", "dead_lettered"), true);
    setCount(links.get("waiting"), n("queued", "suspended"), false);
    setCount(links.get("alerts"), sample.alerts, true);
    fill(banner, bannerOf(sample));
  });
  return h(
    "div",
    h("a.skip", { href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to content"),
    h(
      "header.bar",
      iconButton("Open the navigation", "menu", () => drawer(true), { id: "menu", "aria-controls": "side", "aria-expanded": "false" }),
      h("a.brand", { href: `${ROOT}/` }, logo(), "Servo"),
      h("span.push"),
      iconButton("Search", "search", openPalette),
    ),
    h("div.veil", { onclick: () => drawer(false) }),
    h(
      "div.shell",
      h(
        "aside.side",
        { id: "side" },
        h("a.brand", { href: `${ROOT}/` }, logo(), h("span.word", "Servo")),
        h(
          "button.search-open",
          { type: "button", onclick: openPalette, title: "Search (/)" },
          icon("search"),
          h("span.word", "Search"),
          h("kbd", "/"),
        ),
        h("nav", { "aria-label": "Pages" }, items),
        foot(),
      ),
      h("div", banner, main),
    ),
  );
}

/** On a narrow screen the navigation lies over the page, and only while it is used. */
export function drawer(open) {
  const side = document.getElementById("side");
  const menu = document.getElementById("menu");
  if (!side || !menu) return;
  const was = document.documentElement.classList.contains("drawer-open");
  document.documentElement.classList.toggle("drawer-open", open);
  menu.setAttribute("aria-expanded", String(open));
  if (open) (side.querySelector("nav a[aria-current]") ?? side.querySelector("nav a"))?.focus();
  else if (was && side.contains(document.activeElement)) menu.focus();
}

addEventListener("keydown", (event) => event.key === "Escape" && drawer(false));

function setCount(place, value, bad) {
  if (!place) return;
  place.textContent = value > 0 ? compact(value) : "";
  place.classList.toggle("bad", bad && value > 0);
}

function bannerOf(sample) {
  if (!sample.reachable)
    return h(
      "div.banner.bad",
      icon("failures"),
      "The server does not answer. What you see may be old; the console asks again by itself.",
    );
  if (!sample.ready)
    return h("div.banner", icon("failures"), `The server is not ready: ${sample.reasons.join("; ") || "no reason given"}.`);
  return null;
}

const zoneShort = () => (zone() === "utc" ? "UTC" : `local ${zoneOf()}`);

function foot() {
  const me = who();
  const glyphs = { system: "system", light: "sun", dark: "moon" };
  const word = () => `Theme: ${theme()}`;
  const themeButton = iconButton(
    word(),
    glyphs[theme()],
    () => {
      setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
      themeButton.replaceChildren(icon(glyphs[theme()]));
      themeButton.title = word();
      themeButton.setAttribute("aria-label", word());
    },
    { id: "theme" },
  );
  const zoneWord = () => `Times in ${zone() === "utc" ? "UTC" : `this browser's zone, ${zoneOf()}`}: change`;
  const zoneButton = h(
    "button.zone",
    {
      type: "button",
      id: "zone",
      title: zoneWord(),
      "aria-label": zoneWord(),
      onclick: () => {
        setZone(zone() === "utc" ? "local" : "utc");
        zoneButton.textContent = zoneShort();
        zoneButton.title = zoneWord();
        zoneButton.setAttribute("aria-label", zoneWord());
        render();
      },
    },
    zoneShort(),
  );
  const version = document.querySelector("meta[name=servo-version]").content;
  return h(
    "div.side-foot",
    h(
      "div.who",
      { title: `${me.subject} in ${me.tenantId} (${me.roles.join(", ")})` },
      icon("user"),
      h("div", h("div.clip", me.subject), h("div.clip.muted", `${me.tenantId} · ${me.roles.join(", ")}`)),
    ),
    h(
      "div.side-tools",
      themeButton,
      zoneButton,
      iconButton("Keyboard shortcuts (?)", "help", help),
      key.get() ? iconButton("Leave: forget the key", "lock", () => (leave(), location.reload())) : null,
      h("span.version", version),
    ),
  );
}

/** Marks the place where one is. */
export function mark() {
  drawer(false);
  const [, first = ""] = location.pathname.slice(ROOT.length).split("/");
  for (const link of document.querySelectorAll(".side nav a")) {
    if (link.dataset.place === decoded(first)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
