// What a person chose for this browser.

const THEME = "servo.theme";

export const THEMES = ["system", "light", "dark"];

export function theme() {
  const kept = localStorage.getItem(THEME);
  return THEMES.includes(kept) ? kept : "system";
}

export function setTheme(name) {
  if (name === "system") localStorage.removeItem(THEME);
  else localStorage.setItem(THEME, name);
  applyTheme();
}

export function applyTheme() {
  const name = theme();
  const dark = name === "dark" || (name === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);

const ZONE = "servo.zone";
let zoneKept = localStorage.getItem(ZONE) === "utc" ? "utc" : "local";

/** Whose clock times are told by: `local` is the browser's zone. */
export const zone = () => zoneKept;

export function setZone(name) {
  zoneKept = name === "utc" ? "utc" : "local";
  if (zoneKept === "utc") localStorage.setItem(ZONE, zoneKept);
  else localStorage.removeItem(ZONE);
}
