// Starts the console: theme, who is asking, then the view that the address names.

import { key, whenKeyNeeded } from "./core/api.js";
import { fill, h } from "./core/dom.js";
import { applyTheme } from "./core/prefs.js";
import { route, start, stop } from "./core/router.js";
import { load, who } from "./core/session.js";
import * as alerts from "./pages/alerts.js";
import * as audit from "./pages/audit.js";
import * as entrypointPage from "./pages/entrypoint.js";
import * as entrypoints from "./pages/entrypoints.js";
import * as failures from "./pages/failures.js";
import * as functionPage from "./pages/function.js";
import * as functions from "./pages/functions.js";
import * as invocation from "./pages/invocation.js";
import * as invocations from "./pages/invocations.js";
import { keyPage } from "./pages/key.js";
import * as overview from "./pages/overview.js";
import * as runs from "./pages/runs.js";
import * as waiting from "./pages/waiting.js";
import { bindKeys } from "./ui/keys.js";
import { failure, empty } from "./ui/parts.js";
import { buildShell, mark } from "./ui/shell.js";
import { beginSampling } from "./ui/sampler.js";

applyTheme();

route("", overview.page, "Overview");
route("invocations", invocations.page, "Invocations");
route("invocations/:id", invocation.page, "Invocation");
route("runs", runs.page, "Runs");
route("runs/:id", invocation.page, "Run");
route("failures", failures.page, "Failures");
route("waiting", waiting.page, "Waiting");
route("entrypoints", entrypoints.page, "Entrypoints");
route("entrypoints/:id", entrypointPage.page, "Entrypoint");
route("functions", functions.page, "Functions");
route("functions/:name", functionPage.page, "Function");
route("alerts", alerts.page, "Alerts");
route("audit", audit.page, "Audit");

const app = document.getElementById("app");
let main = null;

async function begin() {
  fill(app);
  try {
    await load();
  } catch (problem) {
    if (problem.status === 401) return;
    fill(app, h("div.key-page", failure(problem, begin)));
    return;
  }
  main = h("main", { id: "main", tabindex: "-1" });
  fill(app, buildShell(main));
  bindKeys();
  beginSampling();
  start(show);
}

/** Each view gets a signal that ends when the next one is shown. */
function show(found, signal) {
  mark();
  document.title = found ? `${found.title} · Servo` : "Servo";
  scrollTo(0, 0);
  if (!found) {
    fill(
      main,
      empty("There is no such page", "The address may be from another version. Press / to search, or use the navigation."),
    );
    return;
  }
  const place = h("div.view");
  fill(main, place);
  Promise.resolve()
    .then(() => found.page({ place, params: found.params, signal }))
    .catch((problem) => {
      if (!signal.aborted)
        fill(
          place,
          failure(problem, () => show(found, signal)),
        );
    });
}

whenKeyNeeded((problem) => {
  if (document.querySelector(".key-page form")) return;
  stop();
  fill(app, keyPage(who() === null && !key.get() ? null : problem));
  document.getElementById("key")?.focus();
});

begin();
